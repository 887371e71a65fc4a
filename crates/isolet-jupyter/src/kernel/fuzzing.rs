//! What must hold of the contents of requests.

use super::contents::{
    CommContent, CommInfoRequest, CompleteRequest, DisplayContent, ExecuteRequest, HistoryRequest,
    InputReply, InspectRequest, IsCompleteRequest, ShutdownRequest,
};
use super::history::History;
use crate::message::Request;

/// Reads the content of a request as that of each type. What a history is asked for, it finds.
pub(crate) fn read_contents(request: &Request) {
    let _ = super::contents::<ExecuteRequest>(request);
    let _ = super::contents::<CompleteRequest>(request);
    let _ = super::contents::<InspectRequest>(request);
    let _ = super::contents::<IsCompleteRequest>(request);
    let _ = super::contents::<InputReply>(request);
    let _ = super::contents::<ShutdownRequest>(request);
    let _ = super::contents::<CommInfoRequest>(request);
    let _ = super::contents::<CommContent>(request);
    let _ = super::contents::<DisplayContent>(request);
    if let Ok(asked) = super::contents::<HistoryRequest>(request) {
        let mut history = History::default();
        for number in 0..3 {
            history.add(number, format!("cell {number}"), None);
        }
        assert!(history.find(&asked).len() <= 3);
    }
}
