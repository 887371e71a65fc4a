//! The limits of exchanges.

use std::time::Duration;

/// Limits of the exchanges of a session. "A run" lasts from one
/// [`Network::begin_run`](super::Network::begin_run) to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetLimits {
    /// Bytes of response bodies that a run may receive. Bytes are counted both as received and
    /// after decoding; the larger number counts.
    pub(crate) response_bytes: u64,
    /// Bytes of URLs, headers and bodies that a run may send.
    pub(crate) request_bytes: u64,
    /// Requests that a run may start, including denied ones, without redirects; and connections
    /// that it may open before it makes requests.
    pub(crate) requests: u64,
    /// Exchanges that may be without a response at a time. Further ones wait.
    pub(crate) concurrent: usize,
    /// Exchanges that may wait. One more fails.
    pub(crate) waiting: usize,
    /// Exchanges that may be open at a time: with a response, and not closed.
    pub(crate) open: usize,
    /// Wall-clock time of an exchange, from its start to the end of its response's body.
    pub(crate) request_time: Duration,
    /// Wall-clock time for connecting, including TLS.
    pub(crate) connect_time: Duration,
    /// Wall-clock time for resolving a name.
    pub(crate) resolve_time: Duration,
    /// Bytes of the headers of a response, and separately of a request.
    pub(crate) header_bytes: usize,
    /// Number of headers of a response, and separately of a request.
    pub(crate) headers: usize,
    /// Redirects that an exchange may follow.
    pub(crate) redirects: u32,
}

impl NetLimits {
    /// 256 MiB.
    pub(crate) const DEFAULT_RESPONSE_BYTES: u64 = 256 << 20;
    /// 64 MiB.
    pub(crate) const DEFAULT_REQUEST_BYTES: u64 = 64 << 20;
    pub(crate) const DEFAULT_REQUESTS: u64 = 1000;
    pub(crate) const DEFAULT_CONCURRENT: usize = 16;
    pub(crate) const DEFAULT_WAITING: usize = 1000;
    pub(crate) const DEFAULT_OPEN: usize = 64;
    /// 60 seconds. A request's own timeout can only shorten it.
    pub(crate) const DEFAULT_REQUEST_TIME: Duration = Duration::from_mins(1);
    /// 10 seconds.
    pub(crate) const DEFAULT_CONNECT_TIME: Duration = Duration::from_secs(10);
    /// 5 seconds.
    pub(crate) const DEFAULT_RESOLVE_TIME: Duration = Duration::from_secs(5);
    /// 64 KiB.
    pub(crate) const DEFAULT_HEADER_BYTES: usize = 64 << 10;
    pub(crate) const DEFAULT_HEADERS: usize = 256;
    pub(crate) const DEFAULT_REDIRECTS: u32 = 10;
    /// The maximum number of bytes that one read returns: 1 MiB.
    pub(crate) const READ_BYTES: usize = 1 << 20;
    /// The maximum length of a URL: 32 KiB.
    pub(crate) const URL_BYTES: usize = 32 << 10;
    /// The maximum number of addresses of a name.
    pub(crate) const ADDRESSES: usize = 32;
    /// DNS lookups that a session may have under way. Further ones wait.
    pub(crate) const CONCURRENT_LOOKUPS: usize = 4;
    /// Idle connections that a session keeps, each for at most [`IDLE_TIME`](Self::IDLE_TIME).
    pub(crate) const IDLE_CONNECTIONS: usize = 16;
    /// 30 seconds.
    pub(crate) const IDLE_TIME: Duration = Duration::from_secs(30);
}

impl Default for NetLimits {
    fn default() -> Self {
        Self {
            response_bytes: Self::DEFAULT_RESPONSE_BYTES,
            request_bytes: Self::DEFAULT_REQUEST_BYTES,
            requests: Self::DEFAULT_REQUESTS,
            concurrent: Self::DEFAULT_CONCURRENT,
            waiting: Self::DEFAULT_WAITING,
            open: Self::DEFAULT_OPEN,
            request_time: Self::DEFAULT_REQUEST_TIME,
            connect_time: Self::DEFAULT_CONNECT_TIME,
            resolve_time: Self::DEFAULT_RESOLVE_TIME,
            header_bytes: Self::DEFAULT_HEADER_BYTES,
            headers: Self::DEFAULT_HEADERS,
            redirects: Self::DEFAULT_REDIRECTS,
        }
    }
}
