//! What a server is made of, as plain data and functions of the program that embeds it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::hub::HubBuilder;
use crate::hub::audit::CallRecord;
use crate::llm::Llm;
use anyhow::Result;
use isolet::blocking::Session;
use isolet::profile::copied_files::CopiedFiles;
use isolet::{Limits, Sandbox, SandboxBuilder};

use isolet_support::socket::Address;

/// What a server is made of.
pub struct Settings {
    /// Where the code of clients runs.
    pub sandboxes: Box<dyn Sandboxes>,
    /// What clients may have.
    pub bounds: Bounds,
    /// Where sessions sleep that nobody uses; they end if there is none.
    pub store: Option<StoreSettings>,
    /// The other servers whose tools the code may call. The server sets the approver and who is
    /// told of calls.
    pub hub: Option<HubBuilder>,
    /// The language model that the code may ask.
    pub llm: Option<Llm>,
    /// Is told of each call of another server's tool.
    pub on_call: Option<OnCall>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("bounds", &self.bounds)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// A function that is told of each call of another server's tool.
pub type OnCall = Box<dyn Fn(&CallRecord) + Send + Sync>;

/// What clients may have.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How long a session is kept that nobody uses.
    pub session_ttl: Duration,
    /// The maximum number of sessions. A new one takes the place of the one not used for longest.
    pub max_sessions: usize,
    /// The maximum length of each part of a result, in characters.
    pub result_chars: usize,
    /// How long the user has to answer whether a call is allowed.
    pub approval_timeout: Duration,
}

/// Where sessions sleep.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// Is made if it is missing. Only its owner may use it.
    pub directory: PathBuf,
    /// How long a session may sleep.
    pub ttl: Duration,
    /// The maximum size of all sessions that sleep.
    pub max_bytes: u64,
}

/// How clients reach a server over HTTP.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Where it listens.
    pub address: Address,
    /// The file of the token that clients have to send. Without it the server makes one, but none
    /// for a Unix socket.
    pub token_file: Option<PathBuf>,
    /// The names that a request's `Host` may have, besides those of this machine.
    pub hosts: Vec<String>,
    /// The origins that a browser's requests may have, besides those of this machine.
    pub origins: Vec<String>,
}

/// The sandbox of a server, and what its sessions begin with. The methods block.
pub trait Sandboxes: Send + Sync + 'static {
    /// Returns what code can do in the sandbox.
    fn abilities(&self) -> Abilities;

    /// Makes the sandbox. `extend` gives the builder the limits, and the tools of the server. What
    /// fails is told to each client, and tried again by its next call.
    ///
    /// # Errors
    ///
    /// Fails if there is no sandbox for this call.
    fn make(&self, extend: &dyn Fn(SandboxBuilder, Limits) -> SandboxBuilder) -> Result<Made>;

    /// Prepares a new session: loads its packages and copies files into it.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be used. Its client is told why.
    fn prepare(&self, session: &mut Session, packages: &[String]) -> Result<CopiedFiles>;

    /// Prepares a session that has slept, which has its packages.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be used. Its client is told why.
    fn prepare_woken(&self, session: &mut Session) -> Result<CopiedFiles>;
}

/// A sandbox, and the packages that each of its sessions has to load.
#[derive(Debug)]
pub struct Made {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// The packages, as requirements.
    pub packages: Vec<String>,
}

/// What code can do in a sandbox, for the description that a model reads.
#[derive(Clone, Debug)]
pub struct Abilities {
    /// How long a run may take.
    pub timeout: Duration,
    /// The packages that sessions have or may load.
    pub packages: Vec<String>,
    /// What the code may reach besides its own memory, in words; empty if nothing.
    pub access: String,
    /// The code may change files of the host.
    pub writes: bool,
    /// The code may send requests.
    pub network: bool,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use anyhow::bail;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::server::python::{Job, Python};

    /// Sandboxes that cannot be made, and how often that was tried.
    struct Broken(Arc<AtomicU32>);

    impl Sandboxes for Broken {
        fn abilities(&self) -> Abilities {
            Abilities {
                timeout: Duration::from_secs(7),
                packages: vec!["numpy".to_owned()],
                access: "the files in /data".to_owned(),
                writes: true,
                network: false,
            }
        }

        fn make(&self, _: &dyn Fn(SandboxBuilder, Limits) -> SandboxBuilder) -> Result<Made> {
            bail!("there is no disk ({})", self.0.fetch_add(1, Ordering::Relaxed))
        }

        fn prepare(&self, _: &mut Session, _: &[String]) -> Result<CopiedFiles> {
            bail!("there is no session")
        }

        fn prepare_woken(&self, _: &mut Session) -> Result<CopiedFiles> {
            bail!("there is no session")
        }
    }

    #[tokio::test]
    async fn a_program_embeds_the_server_and_its_clients_are_told_what_fails() {
        let bounds = Bounds {
            session_ttl: Duration::from_mins(1),
            max_sessions: 2,
            result_chars: 500,
            approval_timeout: Duration::from_mins(1),
        };
        let tried = Arc::<AtomicU32>::default();
        let sandboxes = Box::new(Broken(Arc::clone(&tried)));
        let settings =
            Settings { sandboxes, bounds, store: None, hub: None, llm: None, on_call: None };
        let python = Arc::new(Python::new(settings).unwrap());
        let facts = python.facts().await;
        assert_eq!((facts.timeout, facts.is_destructive), (Duration::from_secs(7), true));
        for expected in ["there is no disk (0)", "there is no disk (1)"] {
            let job = Job { code: "1".to_owned(), timeout: None };
            let begun = python.begin("me", None, job, &CancellationToken::new()).await;
            assert_eq!(begun.err().unwrap(), expected);
        }
        assert_eq!(tried.load(Ordering::Relaxed), 2);
    }
}
