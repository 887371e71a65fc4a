//! The HTTP client of one session: decides, sends requests and follows redirects. Nothing else
//! reaches the network.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::http::response::Parts;
use hyper::{Method, StatusCode, Uri};
use url::Position;

use super::EventSink;
use super::budget::Budget;
use super::connection::Connection;
use super::error::{NetError, NetErrorKind};
use super::event::NetEvent;
use super::head::{ResponseHead, check_headers};
use super::limits::NetLimits;
use super::pool::{Key, Pool};
use super::redirect::{self, Hop};
use super::request::{Prepared, Redirect};
use super::resolve::Resolve;
use super::response::{Lease, ResponseBody};
use super::rules::NetPolicy;
use super::target::{CheckedTarget, Denial, decide};
use super::tls::Tls;

/// State that the exchanges of one session share, and no other session.
pub(super) struct Client {
    pub(super) policy: Arc<NetPolicy>,
    pub(super) limits: NetLimits,
    pub(super) events: EventSink,
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
                    if decode && hop.method != Method::HEAD && !body.has_come() {
                        body.decode(&mut parts.headers);
                    }
                    return Ok((ResponseHead::new(&parts, &target, hop.count > 0), body));
                }
            }
        }
    }

    /// Decides about a hop and reports the decision to the host.
    async fn decide(&self, hop: &Hop) -> Result<CheckedTarget, NetError> {
        let insecure =
            || hop.url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http:"));
        let decision = if hop.secure && insecure() {
            Err(Denial::of(&hop.url, "it is a redirect from https to http"))
        } else {
            decide(&self.policy, &*self.resolver, self.limits.resolve_time, &hop.url).await
        };
        (self.events)(NetEvent::new(&decision, hop.method.as_str(), hop.count));
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
        let uri = Uri::builder().path_and_query(path).build();
        let uri =
            uri.map_err(|error| NetError::invalid(format!("the URL cannot be sent: {error}")))?;
        let mut headers = hop.wire_headers(target)?;
        self.policy.inject(target.origin(), &mut headers);
        let outgoing = hop.payload.take();
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
        let mut connection = Connection::open(target, &self.tls, &self.limits).await?;
        match connection.send(request).await {
            Ok(response) => {
                let lease = Lease { connection, key, sent };
                self.receive(response.into_parts(), server, lease)
            }
            Err(refused) => Err(failed(&refused.error)),
        }
    }

    fn receive(
        self: &Arc<Self>,
        (parts, incoming): (Parts, Incoming),
        server: String,
        lease: Lease,
    ) -> Result<(Parts, ResponseBody), NetError> {
        check_headers(&parts.headers, &self.limits)?;
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
