//! Helpers without policy, on which the other folders build.

pub(crate) mod background;
pub(crate) mod http_client;
pub(crate) mod json;
pub(crate) mod store;
pub(crate) mod words;
