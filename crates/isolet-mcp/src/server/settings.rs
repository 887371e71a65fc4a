//! The settings of a server, as plain data and functions of the program that embeds it.

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

use isolet_support::skills::Skill;
use isolet_support::socket::Address;

/// The settings of a server.
pub struct Settings {
    /// Makes the sandboxes in which the code of clients runs.
    pub sandboxes: Box<dyn Sandboxes>,
    /// The bounds for clients.
    pub bounds: Bounds,
    /// The store of idle sessions; without one, they end.
    pub store: Option<StoreSettings>,
    /// The other servers whose tools the code may call. The server sets the approver and the
    /// observer of calls.
    pub hub: Option<HubBuilder>,
    /// The language model that the code may ask.
    pub llm: Option<Llm>,
    /// Whether clients get the tool `run_shell`. Code that runs commands has the shell anyway.
    pub shell: bool,
    /// Whether clients get the tool `write_file`.
    pub uploads: bool,
    /// The skills that clients may use by the tool `run_skill`. The guest sees each at
    /// `/skills/NAME`.
    pub skills: Vec<Skill>,
    /// Receives a record of each call of another server's tool.
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

/// A function that receives a record of each call of another server's tool.
pub type OnCall = Box<dyn Fn(&CallRecord) + Send + Sync>;

/// The bounds for clients.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The time for which an idle session is kept.
    pub session_ttl: Duration,
    /// The maximum number of sessions. A new one takes the place of the one not used for longest.
    pub max_sessions: usize,
    /// The maximum length of each part of a result, in characters.
    pub result_chars: usize,
    /// The time that the user has to decide about a call.
    pub approval_timeout: Duration,
}

/// The store of idle sessions.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// Is made if it is missing. Only its owner may use it.
    pub directory: PathBuf,
    /// The time that a session may sleep.
    pub ttl: Duration,
    /// The maximum size of all sessions that sleep.
    pub max_bytes: u64,
}

/// The settings of a server over HTTP.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The address that it listens at.
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

    /// Makes the sandbox. `extend` gives the builder the limits, and the tools of the server. Each
    /// client gets the error of a failure, and its next call tries again.
    ///
    /// # Errors
    ///
    /// Fails if there is no sandbox for this call.
    fn make(&self, extend: &dyn Fn(SandboxBuilder, Limits) -> SandboxBuilder) -> Result<Made>;

    /// Prepares a new session: loads its packages and copies files into it.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be used. Its client gets the error.
    fn prepare(&self, session: &mut Session, packages: &[String]) -> Result<CopiedFiles>;

    /// Prepares a session that has slept, which has its packages.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be used. Its client gets the error.
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

/// The abilities of code in a sandbox, for the description that a model reads.
#[derive(Clone, Debug)]
pub struct Abilities {
    /// The time limit of a run.
    pub timeout: Duration,
    /// The packages that sessions have or may load.
    pub packages: Vec<String>,
    /// The resources that the code may reach besides its own memory, in words; empty if none.
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
    use crate::server::python::Python;
    use crate::server::running::Job;
    use crate::server::tools::Runner;

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
        let settings = Settings {
            sandboxes,
            bounds,
            store: None,
            hub: None,
            llm: None,
            shell: false,
            uploads: false,
            skills: Vec::new(),
            on_call: None,
        };
        let python = Arc::new(Python::new(settings).unwrap());
        let facts = python.facts().await;
        assert_eq!((facts.timeout, facts.is_destructive), (Duration::from_secs(7), true));
        for expected in ["there is no disk (0)", "there is no disk (1)"] {
            let code = "1".to_owned();
            let job = Job {
                code,
                runner: Runner::Python,
                timeout: None,
                has_tables: false,
                may_wait: true,
            };
            let begun = python.begin("me", None, job, &CancellationToken::new()).await;
            assert_eq!(begun.err().unwrap(), expected);
        }
        assert_eq!(tried.load(Ordering::Relaxed), 2);
    }
}
