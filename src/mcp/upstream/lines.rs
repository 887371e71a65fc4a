//! Messages as lines of a process's standard streams. A line that is too long fails the one request
//! that it answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::MAX_MESSAGE_BYTES;

/// How much of both ends of a line that is too long is searched for the number of its request.
const ENDS: usize = 256;

/// The size of the buffer that stays between messages.
const USUAL_BYTES: usize = 64 * 1024;

/// A transport over two streams.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    // Both survive a `receive` that is dropped halfway.
    line: Vec<u8>,
    end: Option<Vec<u8>>,
    max_bytes: usize,
    write: Arc<Mutex<Option<W>>>,
    closed: Arc<AtomicBool>,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    pub(super) fn new(read: R, write: W) -> Self {
        Self {
            read: BufReader::with_capacity(USUAL_BYTES, read),
            line: Vec::new(),
            end: None,
            max_bytes: MAX_MESSAGE_BYTES,
            write: Arc::new(Mutex::new(Some(write))),
            closed: Arc::default(),
        }
    }

    /// Returns a flag that is set once the process has closed its stream.
    pub(super) fn closed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.closed)
    }

    /// Reads a line. Returns `None` at the end of the stream.
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let taken = &available[..newline.unwrap_or(available.len())];
            match &mut self.end {
                Some(end) => {
                    end.extend_from_slice(taken);
                    let surplus = end.len().saturating_sub(ENDS);
                    end.drain(..surplus);
                }
                None if self.line.len() + taken.len() > self.max_bytes => {
                    let (length, all) = (taken.len(), std::mem::take(&mut self.line));
                    self.line = all[..all.len().min(ENDS)].to_vec();
                    self.line.extend(taken.iter().take(ENDS - self.line.len()));
                    let mut end = all[all.len().saturating_sub(ENDS)..].to_vec();
                    end.extend_from_slice(&taken[length.saturating_sub(ENDS)..]);
                    self.end = Some(end);
                }
                None => self.line.extend_from_slice(taken),
            }
            let consumed = newline.map_or(available.len(), |at| at + 1);
            self.read.consume(consumed);
            if newline.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(match self.end.take() {
                    Some(end) => Line::TooLong(line, end),
                    None => Line::Whole(line),
                }));
            }
        }
    }
}

enum Line {
    Whole(Vec<u8>),
    /// The first and the last bytes.
    TooLong(Vec<u8>, Vec<u8>),
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
        let write = Arc::clone(&self.write);
        async move {
            let mut bytes = serde_json::to_vec(&message)?;
            bytes.push(b'\n');
            let mut write = write.lock().await;
            let Some(stream) = write.as_mut() else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            stream.write_all(&bytes).await?;
            stream.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match self.next().await {
                Ok(Some(Line::Whole(line))) => serde_json::from_slice(&line).ok(),
                Ok(Some(Line::TooLong(start, end))) => answered(&start, &end).map(|id| {
                    let limit = MAX_MESSAGE_BYTES;
                    let reason = format!("the answer is longer than the limit, {limit} bytes");
                    ServerJsonRpcMessage::error(ErrorData::internal_error(reason, None), Some(id))
                }),
                Ok(None) | Err(_) => {
                    self.closed.store(true, Ordering::Release);
                    return None;
                }
            };
            // What is no message is usually a line that the server prints for people.
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.closed.store(true, Ordering::Release);
        self.write.lock().await.take();
        Ok(())
    }
}

/// Returns the number of the request that a line answers, of which only the ends are known.
fn answered(start: &[u8], end: &[u8]) -> Option<RequestId> {
    let (start, end) = (String::from_utf8_lossy(start), String::from_utf8_lossy(end));
    // After the result has begun, the name is one of the result's.
    let head = start.split("\"result\"").next().unwrap_or_default();
    let number = |text: &str| {
        let text = text.trim_start().strip_prefix(':')?.trim_start();
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<i64>().ok()
    };
    let in_head = head.split_once("\"id\"").and_then(|(_, after)| number(after));
    let in_end = || end.rsplit_once("\"id\"").and_then(|(_, after)| number(after));
    in_head.or_else(in_end).map(RequestId::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Lines<&[u8], tokio::io::Sink> {
        let mut lines = Lines::new(text.as_bytes(), tokio::io::sink());
        lines.max_bytes = 1_000;
        lines
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_fails_its_request_only() {
        let long = "x".repeat(3_000);
        for answer in [
            format!(r#"{{"jsonrpc":"2.0","id": 7,"result":{{"id":1,"x":"{long}"}}}}"#),
            format!(r#"{{"result":{{"id":1,"x":"{long}"}},"jsonrpc":"2.0","id":7}}"#),
        ] {
            let text =
                format!("noise\n\n{answer}\n{{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{{}}}}\n");
            let mut lines = lines(&text);
            let closed = lines.closed();
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
