//! Tests with a host that panics.

use std::sync::Arc;

use super::CatchPanic;
use crate::fs::FileError;
use crate::protocol::{Host, HostReply, HostRequest};

struct Fragile;

impl Host for Fragile {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match request {
            HostRequest::Now => HostReply::Time(1.0),
            request => panic!("cannot answer {request:?}"),
        }
    }

    fn read_file(&self, file: u32, _: u64, _: &mut [u8]) -> Result<u32, FileError> {
        panic!("cannot read file {file}")
    }

    fn fill_entropy(&self, _: &mut [u8]) -> Result<(), String> {
        panic!("there is no entropy")
    }
}

/// A21: a panic in the host during an op is an error of that op.
#[test]
fn a_panic_of_the_host_is_a_failed_request() {
    let host = CatchPanic(Arc::new(Fragile));
    let mut bytes = [0; 4];
    assert!(host.fill_entropy(&mut bytes).is_err());
    assert_eq!(host.read_file(1, 0, &mut bytes), Err(FileError::Io));
    for request in [HostRequest::WallClock, HostRequest::Submit { form: 0, fields: b"" }] {
        assert!(matches!(host.call(request), HostReply::Failed(_)));
    }
    assert!(matches!(host.call(HostRequest::Now), HostReply::Time(_)));
}
