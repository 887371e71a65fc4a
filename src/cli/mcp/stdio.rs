//! The protocol as lines on standard input and output. A line that cannot be read is answered.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::incoming::{self, Incoming, MAX_BYTES};
use super::wire::{Line, Lines};

/// A transport over two streams.
pub(super) struct Stdio<R, W> {
    lines: Lines<R>,
    write: Arc<Mutex<Option<W>>>,
    /// The answer to a line that could not be read, on its way.
    refusing: Option<JoinHandle<()>>,
}

impl<R: AsyncRead + Unpin, W> Stdio<R, W> {
    pub(super) fn new((read, write): (R, W)) -> Self {
        let write = Arc::new(Mutex::new(Some(write)));
        Self { lines: Lines::new(read, MAX_BYTES), write, refusing: None }
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

impl<R, W> Transport<RoleServer> for Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let to = Arc::clone(&self.write);
        async move {
            let line = serde_json::to_vec(&message)?;
            write(&to, line).await
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            // One at a time, so that a client that reads nothing is not owed more and more.
            if let Some(refusing) = &mut self.refusing {
                let _ = refusing.await;
                self.refusing = None;
            }
            let incoming = match self.lines.next().await {
                Ok(Some(Line::Whole(line))) => incoming::read(line),
                Ok(Some(Line::TooLong(start, end, bytes))) => incoming::long(&start, &end, bytes),
                Ok(None) | Err(_) => return None,
            };
            match incoming {
                Incoming::Message(message) => return Some(*message),
                Incoming::Refused(answer) => {
                    let to = Arc::clone(&self.write);
                    let line = answer.to_string().into_bytes();
                    self.refusing = Some(tokio::spawn(async move {
                        // A client that is gone has closed the input, too.
                        let _ = write(&to, line).await;
                    }));
                }
                Incoming::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.take();
        Ok(())
    }
}
