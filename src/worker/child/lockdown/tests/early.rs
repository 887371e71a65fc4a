//! Tests of the state after the first part of the lockdown, without the filter.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::super::{LockdownError, before_threads};
use super::{Running, attempt, settings};
use crate::data::isolation::{IsolationReport, Layer, LayerState};

/// Returns `true` if a worker's report contains a layer that kernels may refuse.
fn grants(layer: Layer) -> bool {
    let report: IsolationReport = serde_json::from_str(&attempt("report").0.unwrap()).unwrap();
    for (layer, state) in report.layers() {
        if let LayerState::Missing(reason) = state {
            assert!(!reason.is_empty(), "{layer}");
        }
    }
    report.is_enforced(layer)
}

#[test]
fn a_worker_has_no_descriptor_but_the_first_three() {
    let done = (Some("[0, 1, 2]".to_owned()), "code 0".to_owned());
    assert_eq!(attempt("descriptors"), done);
}

#[test]
fn a_worker_can_open_list_and_make_nothing_by_a_path() {
    if grants(Layer::Landlock) || grants(Layer::MountNamespace) {
        let nothing = (Some(String::new()), "code 0".to_owned());
        assert_eq!(attempt("paths"), nothing);
        assert_eq!(attempt("late-thread-paths"), nothing);
    }
}

#[test]
fn a_worker_has_no_network_but_a_loopback_that_is_down() {
    if grants(Layer::NetworkNamespace) {
        assert_eq!(attempt("interfaces"), (Some("lo".to_owned()), "code 0".to_owned()));
        let unreachable = (Some("NetworkUnreachable".to_owned()), "code 0".to_owned());
        assert_eq!(attempt("loopback"), unreachable);
    }
}

#[test]
fn a_worker_cannot_reach_an_abstract_socket_of_the_host() {
    if grants(Layer::NetworkNamespace) {
        let name = format!("isolet-lockdown-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        let mut running = Running::start("abstract-socket");
        running.write(&name);
        assert_eq!(running.next(), "false");
        assert_eq!(running.ending(), "code 0");
    }
}

#[test]
fn a_worker_whose_parent_is_another_process_refuses_to_start() {
    assert_eq!(attempt("wrong-parent"), (Some("refused".to_owned()), "code 0".to_owned()));
}

#[test]
fn a_process_with_a_second_thread_refuses_to_lock_itself_down() {
    match before_threads(&settings()) {
        Err(LockdownError::Threads { found }) => assert!(found > 1),
        other => panic!("{other:?}"),
    }
}
