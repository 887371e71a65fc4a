//! Secrets that guests use without seeing them: the guest has a placeholder, and the host puts the
//! secret in its place in requests to named hosts.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use memchr::memmem;

use super::inject::Origin;
use super::rule::{Rule, RuleError};
use crate::data::redact::Redactor;

/// The sizes of a secret, in bytes. A shorter one is found in texts that have nothing to do with
/// it.
const MIN_BYTES: usize = 8;
const MAX_BYTES: usize = 4096;

/// The maximum length of the name of a secret.
const MAX_NAME: usize = 64;

/// The maximum size of all secrets of a policy, in bytes: each piece of a response is searched for
/// all of them.
const MAX_ALL_BYTES: usize = 16 << 10;

/// The maximum number of hosts of a secret.
const MAX_HOSTS: usize = 32;

/// The name of a form's content type.
const FORM: &str = "application/x-www-form-urlencoded";

/// A secret, such as a key of an API, and the hosts that it is for.
///
/// The code finds a placeholder in the environment variable of the secret, which it passes on as it
/// would pass the secret: in a header (also in `Authorization: Basic`), in the path or the query of
/// a URL. The host puts the secret in its place in requests to these hosts only, and the
/// placeholder in the place of the secret in everything that comes back from the network. See
/// [`Permissions::secret`](crate::Permissions::secret).
///
/// ```
/// use isolet::{Permissions, Secret};
///
/// # fn example(key: &str) -> Result<(), isolet::Error> {
/// let permissions = Permissions::none()
///     .allow_net("api.openai.com")?
///     .secret("OPENAI_API_KEY", Secret::new(key).host("api.openai.com"))?;
/// # let _ = permissions;
/// # Ok(()) }
/// # example("sk-0123456789").unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct Secret {
    value: String,
    hosts: Vec<String>,
    is_in_bodies: bool,
}

impl Secret {
    /// Wraps a secret of 8 to 4,096 bytes, without control characters. It is for no host yet.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), hosts: Vec::new(), is_in_bodies: false }
    }

    /// Adds a host that gets the secret: `HOST`, `HOST:PORT` or `*.DOMAIN`, over https;
    /// `http://HOST:PORT` names one that gets it over a connection that is not encrypted. Without a
    /// port, it is the usual one of the scheme.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Puts the secret into bodies of requests, too, of at most 1 MiB, as a `client_secret` of
    /// OAuth needs it.
    ///
    /// Code can then have the host store the secret wherever its API lets it write, for example in
    /// a public post.
    pub fn in_bodies(mut self) -> Self {
        self.is_in_bodies = true;
        self
    }
}

/// Omits the value.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("hosts", &self.hosts)
            .field("is_in_bodies", &self.is_in_bodies)
            .finish_non_exhaustive()
    }
}

/// Returns what stands for a secret in the guest. It is the same in each session, since sessions
/// are saved and copied, and longer than its name, so that no other text is taken for it.
fn placeholder(name: &str) -> String {
    let digest = blake3::hash(name.as_bytes()).to_hex();
    format!("ISOLET_SECRET_{name}_{}", &digest[..8])
}

/// The secrets of a policy.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    secrets: Vec<PlacedSecret>,
    redactor: Arc<Redactor>,
}

/// A secret, its placeholder, and where it goes.
#[derive(Clone)]
struct PlacedSecret {
    name: String,
    placeholder: String,
    value: String,
    hosts: Vec<SecretHost>,
    is_in_bodies: bool,
}

/// Hosts that get a secret.
#[derive(Clone)]
struct SecretHost {
    is_https: bool,
    rule: Rule,
}

impl Secrets {
    /// Adds a secret for a variable of the guest.
    pub(super) fn add(&mut self, name: &str, secret: Secret) -> Result<(), String> {
        let Secret { value, hosts, is_in_bodies } = secret;
        let shown = name.escape_debug();
        let fail = |problem: String| Err(format!("the secret `{shown}` {problem}"));
        let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_word) {
            return fail(format!(
                "has no name of a variable: write 1 to {MAX_NAME} letters, digits and `_`"
            ));
        }
        if !(MIN_BYTES..=MAX_BYTES).contains(&value.len()) {
            let bytes = value.len();
            return fail(format!("has {bytes} bytes, it needs {MIN_BYTES} to {MAX_BYTES}"));
        }
        if value.contains(char::is_control) {
            return fail("has control characters, such as a newline; leave them out".to_owned());
        }
        if hosts.is_empty() || hosts.len() > MAX_HOSTS {
            let count = hosts.len();
            return fail(format!("is for {count} hosts, name 1 to {MAX_HOSTS} that get it"));
        }
        if self.secrets.iter().any(|secret| secret.name == name) {
            return fail("is there twice, name all its hosts at once".to_owned());
        }
        let all = self.secrets.iter().map(|secret| secret.value.len()).sum::<usize>();
        if all + value.len() > MAX_ALL_BYTES {
            let bytes = all + value.len();
            return fail(format!(
                "is too much: the secrets have {bytes} bytes in all, the limit is {MAX_ALL_BYTES}"
            ));
        }
        let hosts = hosts.iter().map(|host| SecretHost::parse(host));
        let hosts: Vec<_> = match hosts.collect() {
            Ok(hosts) => hosts,
            Err(error) => return fail(format!("is for a host that cannot be used: {error}")),
        };
        let placeholder = placeholder(name);
        Arc::make_mut(&mut self.redactor).add(&value, &placeholder);
        let name = name.to_owned();
        self.secrets.push(PlacedSecret { name, placeholder, value, hosts, is_in_bodies });
        Ok(())
    }

    /// Returns the variables of the guest.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.secrets.iter().map(|secret| (&*secret.name, &*secret.placeholder))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Returns what removes the secrets from what comes back.
    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Returns the secrets for requests to an origin.
    pub(crate) fn of(&self, origin: &Origin) -> OriginSecrets<'_> {
        let is_for = |secret: &&PlacedSecret| secret.hosts.iter().any(|host| host.covers(origin));
        OriginSecrets(self.secrets.iter().filter(is_for).collect())
    }
}

/// Shows the names.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.secrets.iter().map(|secret| &secret.name)).finish()
    }
}

impl SecretHost {
    fn parse(entry: &str) -> Result<Self, RuleError> {
        let (is_https, host) = match entry.split_once("://") {
            Some(("https", host)) => (true, host),
            Some(("http", host)) => (false, host),
            Some(_) => return Err(RuleError::new(entry, "has a scheme other than http and https")),
            None => (true, entry),
        };
        Ok(Self { is_https, rule: Rule::parse(host)?.fit_to_allow(host)? })
    }

    fn covers(&self, origin: &Origin) -> bool {
        self.is_https == origin.is_https()
            && self.rule.names(origin.host())
            && self.rule.has_port(origin.port(), origin.has_usual_port())
    }
}

/// The secrets that requests to one origin get.
pub(crate) struct OriginSecrets<'a>(Vec<&'a PlacedSecret>);

impl OriginSecrets<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if bodies get a secret.
    pub(crate) fn has_bodies(&self) -> bool {
        self.0.iter().any(|secret| secret.is_in_bodies)
    }

    /// Puts secrets into the values of headers, which then have at most `limit` bytes.
    pub(crate) fn fill_headers(
        &self,
        headers: &mut HeaderMap,
        limit: usize,
    ) -> Result<(), TooLong> {
        let mut needed = 0_usize;
        for (name, value) in headers.iter_mut() {
            let filled = if *name == header::AUTHORIZATION {
                self.filled_basic(value.as_bytes(), limit)?
            } else {
                None
            };
            let filled = match filled {
                Some(filled) => Some(filled),
                None => self.filled(value.as_bytes(), as_is, limit)?,
            };
            // The text of a secret is valid in a header.
            if let Some(filled) = filled.and_then(|filled| HeaderValue::from_bytes(&filled).ok()) {
                *value = filled;
                value.set_sensitive(true);
                needed += value.len();
            }
        }
        if needed > limit { Err(TooLong { limit, needed }) } else { Ok(()) }
    }

    /// Returns a path and query with its secrets; `None` if it has none.
    pub(crate) fn filled_path(&self, path: &str, limit: usize) -> Result<Option<String>, TooLong> {
        let filled = self.filled(path.as_bytes(), percent_encoded, limit)?;
        Ok(filled.and_then(|filled| String::from_utf8(filled).ok()))
    }

    /// Returns a body with its secrets, written as its content type has it; `None` if it has none.
    pub(crate) fn filled_body(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        limit: usize,
    ) -> Result<Option<Bytes>, TooLong> {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        let kind = kind.trim().to_ascii_lowercase();
        let write = match &*kind {
            FORM => percent_encoded,
            _ if kind.ends_with("json") => in_json,
            _ => as_is,
        };
        let secrets = self.0.iter().copied().filter(|secret| secret.is_in_bodies);
        Ok(Self(secrets.collect()).filled(body, write, limit)?.map(Bytes::from))
    }

    /// Fills a header of Basic, whose credentials are in base64.
    fn filled_basic(&self, value: &[u8], limit: usize) -> Result<Option<Vec<u8>>, TooLong> {
        let text = std::str::from_utf8(value).unwrap_or_default();
        let Some((scheme, encoded)) = text.trim().split_once(' ') else { return Ok(None) };
        if !scheme.eq_ignore_ascii_case("basic") {
            return Ok(None);
        }
        let credentials = STANDARD.decode(encoded.trim()).unwrap_or_default();
        let filled = self.filled(&credentials, as_is, limit)?;
        Ok(filled.map(|filled| format!("{scheme} {}", STANDARD.encode(filled)).into_bytes()))
    }

    /// Returns a text with its secrets, each written by `write`; `None` if it has none.
    fn filled(
        &self,
        text: &[u8],
        write: fn(&str) -> Vec<u8>,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, TooLong> {
        let mut filled: Option<Vec<u8>> = None;
        for secret in &self.0 {
            let text = filled.as_deref().unwrap_or(text);
            let placeholder = secret.placeholder.as_bytes();
            let places = memmem::find_iter(text, placeholder).count();
            if places == 0 {
                continue;
            }
            let value = write(&secret.value);
            let rest = text.len() - places * placeholder.len();
            let needed = rest.saturating_add(places.saturating_mul(value.len()));
            if needed > limit {
                return Err(TooLong { limit, needed });
            }
            let (mut new, mut at) = (Vec::with_capacity(needed), 0);
            for place in memmem::find_iter(text, placeholder) {
                new.extend_from_slice(text.get(at..place).unwrap_or_default());
                new.extend_from_slice(&value);
                at = place + placeholder.len();
            }
            new.extend_from_slice(text.get(at..).unwrap_or_default());
            filled = Some(new);
        }
        Ok(filled)
    }
}

/// What has secrets in it would be longer than it may be, in bytes.
pub(crate) struct TooLong {
    pub(crate) limit: usize,
    pub(crate) needed: usize,
}

fn as_is(secret: &str) -> Vec<u8> {
    secret.as_bytes().to_vec()
}

/// Writes a secret as it is in a URL and in a form.
fn percent_encoded(secret: &str) -> Vec<u8> {
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            vec![byte]
        } else {
            format!("%{byte:02X}").into_bytes()
        }
    };
    secret.bytes().flat_map(encode).collect()
}

/// Writes a secret as it is within a string of JSON. It has no control characters.
fn in_json(secret: &str) -> Vec<u8> {
    secret.replace('\\', "\\\\").replace('"', "\\\"").into_bytes()
}
