//! The HTTP client of one session: decides, sends requests and follows redirects. Nothing else
//! reaches the network.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::http::response::Parts;
use hyper::{Method, StatusCode, Uri};
use url::Position;

use super::body::Outgoing;
use super::budget::Budget;
use super::connection::{self, Connection};
use super::error::{NetError, NetErrorKind};
use super::event::NetEvent;
use super::head::{ResponseHead, check_headers};
use super::limits::NetLimits;
use super::pool::{Key, Pool};
use super::redirect::{self, Hop};
use super::request::{Prepared, Redirect};
use super::resolve::{Reached, Resolve};
use super::response::{Lease, ResponseBody};
use super::rules::NetPolicy;
use super::secrets::{self, Filled};
use super::target::{self, CheckedTarget, Denial, decide};
use super::tls::Tls;
use super::{EventGate, EventSink};

/// The method in events about connections.
const CONNECT: &str = "CONNECT";

/// State that the exchanges of one session share, and no other session.
pub(super) struct Client {
    pub(super) policy: Arc<NetPolicy>,
    pub(super) limits: NetLimits,
    pub(super) events: EventSink,
    pub(super) gate: EventGate,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) tls: Tls,
    pub(super) pool: Pool,
    pub(super) budget: Budget,
}

impl Client {
    /// Requests a URL, and follows redirects if the request asks for it. Every hop is decided
    /// separately.
    pub(super) async fn fetch(
        self: Arc<Self>,
        request: Prepared,
    ) -> Result<(ResponseHead, ResponseBody), NetError> {
        let Prepared { method, url, headers, payload, redirect, decode } = request;
        let redactor = secrets::redactor(self.policy.secrets());
        let mut hop = Hop { method, url, headers, payload, count: 0, secure: false };
        loop {
            let target = self.decide(&hop).await?;
            let (mut parts, mut body) = self.send(&target, &mut hop).await?;
            body.settle().await;
            match (redirect, redirect::location(parts.status, &parts.headers)) {
                (Redirect::Follow, Some(location)) => {
                    hop.follow(&target, parts.status, location, self.limits.redirects)?;
                    // The size that sending the request again would have.
                    let bytes = hop.url.len() + hop.payload.known_bytes();
                    self.budget.charge_sent(bytes, &self.limits)?;
                }
                (Redirect::Error, Some(_)) => {
                    let message = format!("{} redirects, which is not wanted", target.server());
                    return Err(NetError::connection(message));
                }
                (Redirect::Manual, _) | (_, None) => {
                    let has_body = hop.method != Method::HEAD && !body.has_come();
                    if has_body && (decode || redactor.is_some()) {
                        body.decode(&mut parts.headers);
                    }
                    if let Some(redactor) = redactor.filter(|_| has_body) {
                        secrets::check_encoding(&parts.headers, &target.server())?;
                        body.redact(redactor, &mut parts.headers);
                    }
                    return Ok((ResponseHead::new(&parts, &target, hop.count > 0), body));
                }
            }
        }
    }

    /// Checks a server as far as that is possible without a DNS lookup. Reports only a refusal.
    pub(super) fn precheck(&self, host: &str, port: u32) -> Result<(), NetError> {
        target::precheck(&self.policy, host, port).map_err(|denial| {
            let error = denial.to_error();
            (self.events)(NetEvent::new(&Err(denial), CONNECT, 0));
            error
        })
    }

    /// Connects to a server, for the next request to it. If there is an idle connection to it,
    /// that one will serve.
    pub(super) async fn connect(&self, host: &str, port: u32) -> Result<(), NetError> {
        self.precheck(host, port)?;
        let target = self.checked(&target::server_url(host, port), CONNECT, 0).await?;
        if !self.pool.has(&target) {
            let stream = connection::reach(&target, &self.limits).await?;
            self.pool.put_reached(&target, stream);
        }
        Ok(())
    }

    /// Decides about a hop and reports the decision to the host.
    async fn decide(&self, hop: &Hop) -> Result<CheckedTarget, NetError> {
        let insecure =
            || hop.url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http:"));
        if hop.secure && insecure() {
            let denial = Denial::of(&hop.url, "it is a redirect from https to http");
            return self.reported(Err(denial), hop.method.as_str(), hop.count);
        }
        self.checked(&hop.url, hop.method.as_str(), hop.count).await
    }

    /// Decides about a URL and reports the decision to the host.
    async fn checked(&self, url: &str, method: &str, hop: u32) -> Result<CheckedTarget, NetError> {
        let resolver = Reached { pool: &self.pool, resolver: &*self.resolver };
        let decision = decide(&self.policy, &resolver, self.limits.resolve_time, url).await;
        self.reported(decision, method, hop)
    }

    fn reported(
        &self,
        decision: Result<CheckedTarget, Denial>,
        method: &str,
        hop: u32,
    ) -> Result<CheckedTarget, NetError> {
        let decision = decision.and_then(|target| match (self.gate)() {
            Ok(()) => Ok(target),
            Err(reason) => Err(Denial::unlogged(&target, reason)),
        });
        (self.events)(NetEvent::new(&decision, method, hop));
        decision.map_err(|denial| denial.to_error())
    }

    /// Sends a request, over an idle connection to the same target if there is one.
    async fn send(
        self: &Arc<Self>,
        target: &CheckedTarget,
        hop: &mut Hop,
    ) -> Result<(Parts, ResponseBody), NetError> {
        let server = target.server();
        let failed = |error: &hyper::Error| self.describe(error, &server);
        let path = &target.url()[Position::BeforePath..Position::AfterQuery];
        let filled = secrets::fill(self.policy.secrets(), hop, (target, path), &self.limits);
        let Filled { mut headers, path: filled_path, body } = filled.await?;
        let uri = Uri::builder().path_and_query(filled_path.as_deref().unwrap_or(path)).build();
        let uri =
            uri.map_err(|error| NetError::invalid(format!("the URL cannot be sent: {error}")))?;
        self.policy.inject(target.origin(), &mut headers);
        let outgoing = body.map_or_else(|| hop.payload.take(), Outgoing::whole);
        let sent = outgoing.sent();
        let mut request = hyper::Request::new(outgoing);
        *request.method_mut() = hop.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;

        let key = Key::of(target);
        if let Some(mut connection) = self.pool.take(&key) {
            match connection.send(request).await {
                Ok(response) => {
                    let lease = Lease { connection, key, sent };
                    return self.receive(response.into_parts(), server, lease);
                }
                // The server closed the connection while it was idle.
                Err(refused) => match refused.unsent {
                    Some(unsent) => request = *unsent,
                    None => return Err(failed(&refused.error)),
                },
            }
        }
        if let Some(mut connection) = self.over_reached(target).await? {
            match connection.send(request).await {
                Ok(response) => {
                    let lease = Lease { connection, key, sent };
                    return self.receive(response.into_parts(), server, lease);
                }
                // The server closed the connection before there was a request.
                Err(refused) => match refused.unsent {
                    Some(unsent) => request = *unsent,
                    None => return Err(failed(&refused.error)),
                },
            }
        }
        let mut connection = Connection::open(target, &self.tls, &self.limits).await?;
        match connection.send(request).await {
            Ok(response) => {
                let lease = Lease { connection, key, sent };
                self.receive(response.into_parts(), server, lease)
            }
            Err(refused) => Err(failed(&refused.error)),
        }
    }

    /// Begins HTTP on a connection to the target that was made for its next request. Returns `None`
    /// if there is none, or its server has closed it.
    async fn over_reached(&self, target: &CheckedTarget) -> Result<Option<Connection>, NetError> {
        let Some(stream) = self.pool.take_reached(target) else { return Ok(None) };
        match Connection::open_over(stream, target, &self.tls, &self.limits).await {
            Ok(connection) => Ok(Some(connection)),
            Err(NetError { kind: NetErrorKind::Reset | NetErrorKind::Cut, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn receive(
        self: &Arc<Self>,
        (mut parts, incoming): (Parts, Incoming),
        server: String,
        lease: Lease,
    ) -> Result<(Parts, ResponseBody), NetError> {
        check_headers(&parts.headers, &self.limits)?;
        secrets::redact_head(&mut parts, self.policy.secrets().redactor());
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            let message = format!("{server} switched to another protocol without being asked");
            return Err(NetError::connection(message));
        }
        Ok((parts, ResponseBody::new(Arc::clone(self), server, incoming, lease)))
    }

    fn describe(&self, error: &hyper::Error, server: &str) -> NetError {
        // hyper's client has no method for this check, only its server.
        if error.is_parse() && error.to_string() == "message head is too large" {
            let message = format!(
                "headers of a response: limit {} bytes and {} headers, needed more",
                self.limits.header_bytes, self.limits.headers
            );
            return NetError::new(NetErrorKind::Limit, message);
        }
        NetError::from_hyper(error, server)
    }
}
