//! The protocol as lines on standard input and output. A line that cannot be read is answered.

use std::io;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::incoming::{self, Incoming, MAX_BYTES};
use isolet_support::json_rpc::{Duplex, Line};

/// A transport over two streams.
pub(super) struct Stdio<R, W>(Duplex<R, W>);

impl<R, W> Stdio<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new((read, write): (R, W)) -> Self {
        Self(Duplex::new(read, write, MAX_BYTES))
    }
}

impl<R, W> Transport<RoleServer> for Stdio<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let incoming = match self.0.next().await? {
                Line::Whole(line) => incoming::read(line),
                Line::TooLong(start, end, bytes) => incoming::long(&start, &end, bytes),
            };
            match incoming {
                Incoming::Message(message) => return Some(*message),
                Incoming::Refused(answer) => self.0.refuse(answer.to_string().into_bytes()),
                Incoming::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.close().await;
        Ok(())
    }
}
