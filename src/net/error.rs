//! Failures of exchanges, as the guest sees them.

use std::error::Error as _;
use std::io;
use std::time::Duration;

/// Why an exchange failed. The message is for the guest and never contains an address from a DNS
/// answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct NetError {
    pub(crate) kind: NetErrorKind,
    pub(crate) message: String,
}

/// The kind of failure, which determines the exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetErrorKind {
    /// The policy denies it.
    Denied,
    /// A time limit was exceeded.
    Timeout,
    /// The connection was refused.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection before its response was whole.
    Cut,
    /// The connection failed in another way: TLS, no route, invalid HTTP.
    Connection,
    /// The name does not exist.
    NotFound,
    /// The request is invalid.
    Invalid,
    /// A limit was reached.
    Limit,
}

impl NetError {
    pub(crate) fn new(kind: NetErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Returns the class of the exception that the guest gets.
    pub(crate) fn python_type(&self) -> &'static str {
        match self.kind {
            NetErrorKind::Denied => "PermissionError",
            NetErrorKind::Timeout => "TimeoutError",
            NetErrorKind::Refused => "ConnectionRefusedError",
            NetErrorKind::Reset => "ConnectionResetError",
            NetErrorKind::Cut => "ConnectionAbortedError",
            NetErrorKind::Connection => "ConnectionError",
            NetErrorKind::NotFound => "gaierror",
            NetErrorKind::Invalid => "ValueError",
            NetErrorKind::Limit => "RuntimeError",
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(NetErrorKind::Invalid, message)
    }

    pub(super) fn connection(message: impl Into<String>) -> Self {
        Self::new(NetErrorKind::Connection, message)
    }

    pub(super) fn limit(what: &str, limit: u64, observed: u64) -> Self {
        Self::new(NetErrorKind::Limit, format!("{what}: limit {limit}, needed {observed}"))
    }

    pub(super) fn timeout(what: &str, limit: Duration) -> Self {
        let message = format!("{what} took longer than {} s", limit.as_secs_f64());
        Self::new(NetErrorKind::Timeout, message)
    }

    /// Makes the error for callers that wait for an exchange which was closed.
    pub(super) fn closed() -> Self {
        Self::connection("the exchange was closed")
    }

    pub(super) fn not_open(exchange: u32) -> Self {
        Self::invalid(format!("exchange {exchange} is not open"))
    }

    /// Describes a failure of a socket or of TLS, with `server` as `HOST:PORT`.
    pub(super) fn from_io(error: &io::Error, server: &str) -> Self {
        let (kind, what) = match error.kind() {
            io::ErrorKind::ConnectionRefused => (NetErrorKind::Refused, "refused the connection"),
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => (NetErrorKind::Reset, "broke the connection off"),
            io::ErrorKind::UnexpectedEof => {
                (NetErrorKind::Cut, "closed the connection before its response was whole")
            }
            io::ErrorKind::TimedOut => (NetErrorKind::Timeout, "did not answer in time"),
            _ => return Self::connection(format!("the connection to {server} failed: {error}")),
        };
        Self::new(kind, format!("{server} {what}"))
    }

    /// Describes a failure of HTTP, with `server` as `HOST:PORT`.
    pub(super) fn from_hyper(error: &hyper::Error, server: &str) -> Self {
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(error) = cause.downcast_ref::<Self>() {
                return error.clone();
            }
            if let Some(error) = cause.downcast_ref::<io::Error>() {
                return Self::from_io(error, server);
            }
            source = cause.source();
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            let message = format!("{server} closed the connection before its response was whole");
            return Self::new(NetErrorKind::Cut, message);
        }
        Self::connection(format!("{server} sent what is not HTTP: {error}"))
    }
}
