//! Messages as lines of a process's standard streams.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::answers::{MAX_LINE_BYTES, Reader, Said};
use crate::mcp::wire::{self, Line};

/// A transport over two streams.
pub(super) struct Lines<R, W> {
    read: wire::Lines<R>,
    reader: Reader,
    /// What a line that was read stands for.
    messages: VecDeque<ServerJsonRpcMessage>,
    write: Arc<Mutex<Option<W>>>,
    /// The answer to a request that could not be read, on its way.
    refusing: Option<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    pub(super) fn new(read: R, write: W, reader: Reader) -> Self {
        Self {
            read: wire::Lines::new(read, MAX_LINE_BYTES),
            reader,
            messages: VecDeque::new(),
            write: Arc::new(Mutex::new(Some(write))),
            refusing: None,
            closed: Arc::default(),
        }
    }

    /// Returns a flag that is set once the process has closed its stream.
    pub(super) fn closed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.closed)
    }
}

/// Writes a line, if the stream is still open.
async fn write<W: AsyncWrite + Unpin>(to: &Mutex<Option<W>>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut to = to.lock().await;
    let Some(stream) = to.as_mut() else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    stream.write_all(&line).await?;
    stream.flush().await
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let to = Arc::clone(&self.write);
        self.reader.sent(&message);
        async move {
            let line = serde_json::to_vec(&message)?;
            write(&to, line).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            // One at a time, so that a server that reads nothing is not owed more and more.
            if let Some(refusing) = &mut self.refusing {
                let _ = refusing.await;
                self.refusing = None;
            }
            let said = match self.read.next().await {
                Ok(Some(Line::Whole(line))) => self.reader.line(line),
                Ok(Some(Line::TooLong(start, end, bytes))) => {
                    self.reader.long_line(&start, &end, bytes)
                }
                Ok(None) | Err(_) => {
                    self.closed.store(true, Ordering::Release);
                    return None;
                }
            };
            match said {
                Said::Messages(messages) => self.messages.extend(messages),
                Said::Refused(line) => {
                    let to = Arc::clone(&self.write);
                    self.refusing = Some(tokio::spawn(async move {
                        // Whether it is written shows itself at the next call.
                        let _ = write(&to, line).await;
                    }));
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.closed.store(true, Ordering::Release);
        self.write.lock().await.take();
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
            let mut lines = Lines::new(text.as_bytes(), tokio::io::sink(), Reader::new(1_000));
            let closed = lines.closed();
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
