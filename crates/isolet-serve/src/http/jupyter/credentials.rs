//! The credentials of Jupyter's clients: `Authorization: token KEY`, or `?token=KEY`.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use isolet_service::node;

use crate::http::credentials::Credentials;

/// The credentials of a request.
pub(super) struct JupyterCredentials(pub(super) Credentials);

impl<S: Sync> FromRequestParts<S> for JupyterCredentials {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(credentials(parts).await))
    }
}

/// Returns the credentials of a request.
pub(in crate::http) async fn credentials(parts: &mut Parts) -> Credentials {
    let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("token").then(|| key.trim().to_owned())
    });
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let named = || pairs.find(|(name, _)| name == "token").map(|(_, token)| token.into_owned());
    if let Some(key) = token.or_else(named) {
        return Credentials(node::Credentials { key: Some(key), token: None });
    }
    let Ok(credentials) = Credentials::from_request_parts(parts, &()).await;
    credentials
}
