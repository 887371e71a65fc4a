//! Tests of the isolation report.

use super::*;

fn report() -> IsolationReport {
    IsolationReport::process([
        (Layer::Process, LayerState::Enforced(String::new())),
        (Layer::Seccomp, LayerState::Enforced("2 system calls".to_owned())),
        (Layer::Landlock, LayerState::Missing("the kernel has none".to_owned())),
    ])
}

#[test]
fn a_name_is_read_back_as_its_layer() {
    for layer in Layer::ALL {
        assert_eq!(layer.name().parse(), Ok(*layer));
        assert_eq!(serde_json::to_string(layer).unwrap(), format!("\"{layer}\""));
    }
    let error = "Seccomp".parse::<Layer>().unwrap_err().to_string();
    assert!(error.starts_with("there is no isolation layer `Seccomp`; there are process, "));
}

#[test]
fn all_layers_are_listed_once_and_in_order() {
    assert!(Layer::ALL.is_sorted_by(|a, b| a < b));
    assert!(report().layers().map(|(layer, _)| layer).eq(Layer::ALL.iter().copied()));
    // `ALL` is in the order of the variants, so the last variant gives its length.
    assert_eq!(Layer::ALL.len(), Layer::Seccomp as usize + 1);
}

#[test]
fn what_is_not_spoken_of_is_missing() {
    let report = report();
    assert!(!report.is_enforced(Layer::NetworkNamespace));
    let required = [Layer::Process, Layer::Landlock, Layer::NetworkNamespace];
    assert_eq!(report.missing(&required), required[1..]);
    assert_eq!(IsolationReport::thread().missing(Layer::ALL), Layer::ALL);
}

#[test]
fn a_report_crosses_a_socket_unchanged() {
    for report in [report(), IsolationReport::thread()] {
        let bytes = postcard::to_stdvec(&report).unwrap();
        assert_eq!(postcard::from_bytes::<IsolationReport>(&bytes).unwrap(), report);
    }
}

#[test]
fn a_report_is_shown_as_aligned_lines() {
    let text = report().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "isolation          process");
    assert_eq!(lines[1], "process            yes");
    assert_eq!(lines[2], "empty-environment  no   it was not attempted");
    assert_eq!(lines.last(), Some(&"seccomp            yes  2 system calls"));
    assert_eq!(lines.len(), 1 + Layer::ALL.len());
}
