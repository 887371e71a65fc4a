//! `isolet mcp --http`: the protocol over HTTP, for clients that know the token.

mod cross_origin;
mod front;

use std::fmt;
use std::future::Future;
use std::io::Write;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{AUTHORIZATION, HeaderMap};
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use self::cross_origin::Origins;
use self::front::Front;
use super::handler::Server;
use super::incoming::MAX_BYTES;
use super::python::Python;
use super::settings::HttpSettings;
use isolet_support::http_server::{self, Limits};
use isolet_support::secret;
use isolet_support::socket::{Address, LOOPBACK, bind_unix};

/// The only path that is served.
const PATH: &str = "/mcp";

/// The most connections. A further one ends a silent one: first those whose clients have not sent
/// the token.
const MAX_CONNECTIONS: usize = 512;

/// The origins of pages that this machine serves. Such a page still has to know the token.
const LOCAL_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// The bytes of a token that isolet makes.
const TOKEN_BYTES: usize = 24;

/// A socket that is open, and who may use it.
pub struct Listener {
    socket: Socket,
    /// `None` for a Unix socket without a token: its file lets its owner in only.
    token: Option<Token>,
    origins: Origins,
    config: StreamableHttpServerConfig,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("socket", &self.socket).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Socket {
    Tcp(std::net::TcpListener),
    Unix(StdUnixListener, PathBuf),
}

/// The hash of a token. Comparing hashes takes the same time for all inputs.
#[derive(Clone, Copy)]
struct Token(blake3::Hash);

/// The sender of a request.
#[derive(Clone)]
struct Principal(String);

/// Returns the sender of the request with these extensions, if it came by HTTP.
pub(super) fn principal(extensions: &Extensions) -> Option<String> {
    let parts = extensions.get::<hyper::http::request::Parts>()?;
    parts.extensions.get::<Principal>().map(|principal| principal.0.clone())
}

impl Listener {
    /// Opens the socket, and says on standard error how to reach it.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be had, or the file of the token is none that may be used.
    pub fn open(settings: HttpSettings) -> Result<Self> {
        let HttpSettings { address, token_file, hosts, origins } = settings;
        let given = token_file.as_deref().map(read_token).transpose()?;
        let local = LOOPBACK.iter().map(|&host| host.to_owned());
        let hosts: Vec<String> = local.chain(hosts).collect();
        let local = LOCAL_ORIGINS.iter().map(|&origin| origin.to_owned());
        let allowed: Vec<String> = local.chain(origins).collect();
        let origins = Origins::new(allowed.iter().map(String::as_str));
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(allowed)
            .enforce_origin_validation()
            .with_max_request_body_bytes(2 * MAX_BYTES);
        let mut stderr = std::io::stderr().lock();
        let (socket, token) = match address {
            Address::Tcp(address) => {
                let is_open = !address.ip().is_loopback();
                ensure!(
                    !is_open || given.is_some(),
                    "`--http {address}` is open to other machines and needs a token: name its file \
                     with `--token-file`"
                );
                let socket = std::net::TcpListener::bind(address);
                let socket = socket.with_context(|| format!("cannot listen at {address}"))?;
                let address = socket.local_addr().context("the socket has no address")?;
                writeln!(stderr, "listening at http://{address}{PATH}")?;
                let token = if let Some(token) = given {
                    token
                } else {
                    let (token, text) = new_token()?;
                    writeln!(stderr, "clients have to send: Authorization: Bearer {text}")?;
                    token
                };
                (Socket::Tcp(socket), Some(token))
            }
            Address::Unix(path) => {
                let socket = bind_unix(&path)?;
                writeln!(stderr, "listening at {}, path {PATH}", path.display())?;
                (Socket::Unix(socket, path), given)
            }
        };
        Ok(Self { socket, token, origins, config })
    }

    /// Serves clients until the end.
    pub(super) async fn serve(
        self,
        python: Arc<Python>,
        end: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(python.bounds().session_ttl);
        let factory = move || Ok(Server::new(Arc::clone(&python), "http".to_owned()));
        let service = StreamableHttpService::new(factory, Arc::new(sessions), self.config);
        let front = Front { service, token: self.token, origins: Arc::new(self.origins) };
        let (listener, file) = match self.socket {
            Socket::Tcp(socket) => (http_server::Listener::tcp(socket), None),
            Socket::Unix(socket, path) => (http_server::Listener::unix(socket), Some(path)),
        };
        let listener = listener.context("the socket cannot be listened at")?;
        let limits = Limits::new(MAX_CONNECTIONS);
        // This token is never cancelled: at the end, sessions go to sleep and answers are given up.
        let never = CancellationToken::new();
        let answer = move |request| front.clone().answer(request);
        let served = tokio::select! {
            () = http_server::serve(listener, limits, never, answer) => Ok(()),
            ended = end => ended,
        };
        if let Some(path) = file {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
        served
    }
}

impl Token {
    fn is_sent_by(self, headers: &HeaderMap) -> bool {
        let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = sent.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        token.is_some_and(|token| blake3::hash(token.as_bytes()) == self.0)
    }
}

/// Reads the token from a file that no other user may read.
fn read_token(path: &Path) -> Result<Token> {
    let shown = path.display();
    let text = secret::read(path)?;
    let token = text.trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        is_plain && token.len() >= 16,
        "the token in `{shown}` has {} characters; it needs 16 or more, of printable ASCII without \
         spaces",
        token.chars().count()
    );
    Ok(Token(blake3::hash(token.as_bytes())))
}

/// Makes a token. Returns it and its text.
fn new_token() -> Result<(Token, String)> {
    let mut random = [0u8; TOKEN_BYTES];
    if let Err(error) = getrandom::fill(&mut random) {
        bail!("there is no randomness for a token: {error}");
    }
    let token = URL_SAFE_NO_PAD.encode(random);
    Ok((Token(blake3::hash(token.as_bytes())), token))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_file_that_others_may_read_or_that_is_short_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let set = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read_token(&path).map(|token| token.0).map_err(|error| error.to_string())
        };
        let token = set("0123456789abcdef\n", 0o600).unwrap();
        assert_eq!(token, blake3::hash(b"0123456789abcdef"));
        assert!(set("0123456789abcdef", 0o644).unwrap_err().contains("chmod 600"));
        assert!(set("short", 0o600).unwrap_err().contains("5 characters"));
        assert!(set("0123456789 abcdef", 0o600).is_err());
    }
}
