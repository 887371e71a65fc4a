//! Reads the body of a response.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{self, HeaderMap};

use super::client::Client;
use super::connection::Connection;
use super::decode::Decoder;
use super::error::NetError;
use super::pool::Key;
use crate::data::redact::{RedactedStream, Redactor};

/// A connection in use, and the target for which it may be kept.
pub(super) struct Lease {
    pub(super) connection: Connection,
    pub(super) key: Key,
    /// Set if the whole request body was sent.
    pub(super) sent: Arc<AtomicBool>,
}

/// The body of a response. Dropping it closes its connection, unless it was read to its end.
pub(super) struct ResponseBody {
    client: Arc<Client>,
    server: String,
    incoming: Option<(Incoming, Lease)>,
    decoder: Option<Decoder>,
    redacted: Option<RedactedStream>,
    /// Received, but not decoded.
    raw: Bytes,
    /// Decoded, but not read.
    ready: Bytes,
    received: u64,
    decoded: u64,
    charged: u64,
}

impl ResponseBody {
    pub(super) fn new(
        client: Arc<Client>,
        server: String,
        incoming: Incoming,
        lease: Lease,
    ) -> Self {
        Self {
            client,
            server,
            incoming: Some((incoming, lease)),
            decoder: None,
            redacted: None,
            raw: Bytes::new(),
            ready: Bytes::new(),
            received: 0,
            decoded: 0,
            charged: 0,
        }
    }

    /// Returns `true` if the server has sent the whole body.
    pub(super) fn has_come(&self) -> bool {
        self.incoming.is_none()
    }

    /// Returns `true` if the whole body was read.
    pub(super) fn is_over(&self) -> bool {
        self.incoming.is_none()
            && self.raw.is_empty()
            && self.ready.is_empty()
            && self.decoder.is_none()
            && self.redacted.is_none()
    }

    /// Decodes the body if its encoding is known, and removes the headers about the encoded body.
    pub(super) fn decode(&mut self, headers: &mut HeaderMap) {
        self.decoder = Decoder::new(headers);
        if self.decoder.is_some() {
            headers.remove(header::CONTENT_ENCODING);
            headers.remove(header::CONTENT_LENGTH);
        }
    }

    /// Removes secrets from the decoded body, and the header about its length, which that changes.
    pub(super) fn redact(&mut self, redactor: Arc<Redactor>, headers: &mut HeaderMap) {
        self.redacted = Some(RedactedStream::new(redactor));
        headers.remove(header::CONTENT_LENGTH);
    }

    /// Returns the connection to the pool if nothing more will arrive on it.
    pub(super) async fn settle(&mut self) {
        if self.incoming.as_ref().is_some_and(|(incoming, _)| incoming.is_end_stream()) {
            self.give_back().await;
        }
    }

    async fn give_back(&mut self) {
        if let Some((_, mut lease)) = self.incoming.take() {
            let sent = lease.sent.load(Ordering::Relaxed);
            if sent && lease.connection.ready().await {
                self.client.pool.put(lease.key, lease.connection);
            }
        }
    }

    /// Reads at most `max` bytes; none at the end.
    pub(super) async fn read(&mut self, max: usize) -> Result<Vec<u8>, NetError> {
        loop {
            if !self.ready.is_empty() {
                return Ok(self.ready.split_to(max.min(self.ready.len())).to_vec());
            }
            if !self.raw.is_empty() {
                self.decode_some()?;
                tokio::task::consume_budget().await;
            } else if self.incoming.is_some() {
                self.receive().await?;
            } else if let Some(mut decoder) = self.decoder.take() {
                // An empty body is valid in every encoding.
                if self.received > 0 {
                    let rest = decoder.finish().map_err(|error| self.undecodable(&error))?;
                    self.decoded += rest.len() as u64;
                    self.charge()?;
                    self.ready = self.without_secrets(rest);
                }
            } else if let Some(mut redacted) = self.redacted.take() {
                self.ready = redacted.finish();
            } else {
                return Ok(Vec::new());
            }
        }
    }

    async fn receive(&mut self) -> Result<(), NetError> {
        let Some((incoming, _)) = &mut self.incoming else { return Ok(()) };
        match poll_fn(|context| Pin::new(&mut *incoming).poll_frame(context)).await {
            Some(Ok(frame)) => {
                // Trailers are ignored.
                self.raw = frame.into_data().unwrap_or_default();
                self.received += self.raw.len() as u64;
                self.charge()?;
            }
            Some(Err(error)) => {
                self.incoming = None;
                return Err(NetError::from_hyper(&error, &self.server));
            }
            // The end of a body of unknown length is only known once it arrives.
            None => self.give_back().await,
        }
        self.settle().await;
        Ok(())
    }

    fn decode_some(&mut self) -> Result<(), NetError> {
        let decoded = match &mut self.decoder {
            None => std::mem::take(&mut self.raw),
            Some(decoder) => {
                let bytes =
                    decoder.step(&mut self.raw).map_err(|error| self.undecodable(&error))?;
                self.decoded += bytes.len() as u64;
                self.charge()?;
                bytes
            }
        };
        self.ready = self.without_secrets(decoded);
        Ok(())
    }

    fn without_secrets(&mut self, bytes: Bytes) -> Bytes {
        match &mut self.redacted {
            Some(redacted) => redacted.push(&bytes),
            None => bytes,
        }
    }

    fn charge(&mut self) -> Result<(), NetError> {
        let used = self.received.max(self.decoded);
        self.client.budget.charge_received(used - self.charged, &self.client.limits)?;
        self.charged = used;
        Ok(())
    }

    fn undecodable(&self, error: &std::io::Error) -> NetError {
        NetError::connection(format!("{} sent a body that cannot be decoded: {error}", self.server))
    }
}
