//! What a request has begun and nobody waits for any more.

use super::super::Request;
use super::Node;
use super::run_gate::Pass;

/// Sends a request to the service if it is dropped: nobody waits for what it was made for any more.
pub(super) struct OnDrop<'a> {
    node: &'a Node,
    request: Option<Request>,
    /// Kept until the request has been carried out.
    pass: Option<Pass>,
}

impl<'a> OnDrop<'a> {
    pub(super) fn new(node: &'a Node, request: Request) -> Self {
        Self { node, request: Some(request), pass: None }
    }

    /// Keeps a place among the runs until the request has been carried out.
    pub(super) fn keeping(mut self, pass: Pass) -> Self {
        self.pass = Some(pass);
        self
    }

    pub(super) fn disarm(mut self) {
        self.request = None;
    }
}

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        let pass = self.pass.take();
        if let Some(request) = self.request.take()
            && let Some(work) = self.node.service.accept(self.node.next(), request)
        {
            tokio::task::spawn_blocking(move || {
                work.run();
                drop(pass);
            });
        }
    }
}
