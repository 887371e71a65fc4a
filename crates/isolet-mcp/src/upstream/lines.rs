//! Messages as lines of a process's standard streams.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::answers::{MAX_LINE_BYTES, Reader, ReceivedLine};
use isolet::internals::lock;
use isolet_support::json_rpc::{Duplex, Line};

/// A transport over two streams.
pub(super) struct Lines<R, W> {
    wire: Duplex<R, W>,
    reader: Reader,
    /// The messages of a line that was read.
    messages: VecDeque<ServerJsonRpcMessage>,
    closed: Arc<AtomicBool>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W, reader: Reader) -> Self {
        Self {
            wire: Duplex::new(read, write, MAX_LINE_BYTES),
            reader,
            messages: VecDeque::new(),
            closed: Arc::default(),
        }
    }

    /// Returns a flag that is set once the process has closed its stream.
    pub(super) fn closed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.closed)
    }

    /// Lends itself to a client, and returns where it is found when that gives up.
    pub(super) fn lend(self) -> (Lent<R, W>, Returned<R, W>) {
        let place = Arc::new(Mutex::new(None));
        let lent = Lent { lines: Some(self), place: Arc::downgrade(&place) };
        (lent, Returned(place))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let said = match self.wire.next().await {
                Some(Line::Whole(line)) => self.reader.line(line),
                Some(Line::TooLong(start, end, bytes)) => {
                    self.reader.long_line(&start, &end, bytes)
                }
                None => {
                    self.closed.store(true, Ordering::Release);
                    return None;
                }
            };
            match said {
                ReceivedLine::Messages(messages) => self.messages.extend(messages),
                ReceivedLine::Refused(line) => self.wire.refuse(line),
            }
        }
    }
}

/// Streams that a client has for as long as it wants them.
pub(super) struct Lent<R, W> {
    /// `None` only while it is dropped.
    lines: Option<Lines<R, W>>,
    place: Weak<Mutex<Option<Lines<R, W>>>>,
}

/// Receives the streams when a client no longer has them.
pub(super) struct Returned<R, W>(Arc<Mutex<Option<Lines<R, W>>>>);

impl<R, W> Returned<R, W> {
    /// Returns the streams, unless the client has them still.
    pub(super) fn take(self) -> Option<Lines<R, W>> {
        lock(&self.0).take()
    }
}

impl<R, W> Drop for Lent<R, W> {
    fn drop(&mut self) {
        // Once the client has begun, the streams are not taken back.
        if let Some(place) = self.place.upgrade() {
            *lock(&place) = self.lines.take();
        }
    }
}

impl<R, W> Transport<RoleClient> for Lent<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = self.lines.as_ref().map(|lines| {
            lines.reader.sent(&message);
            lines.wire.send(message)
        });
        async move {
            match sent {
                Some(sent) => sent.await,
                None => Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.lines.as_mut()?.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        if let Some(lines) = &mut self.lines {
            lines.closed.store(true, Ordering::Release);
            lines.wire.close().await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ClientRequest, ListToolsRequest, RequestId};

    use super::*;

    fn request(id: i64) -> ClientJsonRpcMessage {
        let list = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        ClientJsonRpcMessage::request(list, RequestId::Number(id))
    }

    #[tokio::test]
    async fn a_line_that_cannot_be_used_fails_its_request_only_and_the_last_needs_no_end() {
        let long = "x".repeat(MAX_LINE_BYTES);
        for answer in [
            format!(r#"{{"jsonrpc":"2.0","id": 7,"result":{{"id":1,"x":"{long}"}}}}"#),
            format!(r#"{{"result":{{"id":1,"x":"{long}"}},"jsonrpc":"2.0","id":7}}"#),
        ] {
            let text =
                format!("noise\n\n{answer}\n{{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{{}}}}");
            let lines = Lines::new(io::Cursor::new(text), tokio::io::sink(), Reader::new(1_000));
            let closed = lines.closed();
            let (mut lines, _) = lines.lend();
            lines.send(request(7)).await.unwrap();
            lines.send(request(8)).await.unwrap();
            match lines.receive().await {
                Some(ServerJsonRpcMessage::Error(error)) => {
                    assert_eq!(error.id, Some(RequestId::Number(7)));
                }
                other => panic!("{other:?}"),
            }
            match lines.receive().await {
                Some(ServerJsonRpcMessage::Response(response)) => {
                    assert_eq!(response.id, RequestId::Number(8));
                }
                other => panic!("{other:?}"),
            }
            assert!(!closed.load(Ordering::Acquire));
            assert!(lines.receive().await.is_none());
            assert!(closed.load(Ordering::Acquire));
        }
    }
}
