//! Extracts the credentials of a request from its headers.

use std::convert::Infallible;
use std::ops::Deref;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet_service::node;

/// The credentials of a request.
pub(super) struct Credentials(pub(super) node::Credentials);

impl Credentials {
    /// Creates credentials with a session's token and no key.
    pub(super) fn of_session(token: String) -> Self {
        Self(node::Credentials { key: None, token: Some(token) })
    }
}

impl Deref for Credentials {
    type Target = node::Credentials;

    fn deref(&self) -> &node::Credentials {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Credentials {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(AUTHORIZATION.as_str()).and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
        // Clients send this for `http://user:KEY@HOST`.
        let basic = text(AUTHORIZATION.as_str()).and_then(basic_key);
        let named = || text("x-api-key").or_else(|| text("open-sandbox-api-key"));
        let key = bearer.or_else(named).or(basic.as_deref());
        let token = text("x-session-token").or(bearer);
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok(Self(node::Credentials { key: owned(key), token: owned(token) }))
    }
}

/// Returns the password of basic authentication, or the user name if the password is empty.
fn basic_key(value: &str) -> Option<String> {
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded =
        STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(decoded).ok()?;
    let (name, password) = text.split_once(':')?;
    Some(if password.is_empty() { name } else { password }.to_owned())
}
