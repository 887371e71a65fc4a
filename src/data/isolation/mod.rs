//! How a session is isolated from the process that uses the library, and which layers are in force.

mod system_call;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::system_call::{CallRule, SystemCall};
use crate::data::error::{Error, ErrorKind};

/// Where a session's V8 and its Python run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Isolation {
    /// On a thread of the process that uses the library. The default except on Linux.
    ///
    /// The boundary is the language and the ops: the guest can call only the functions that the
    /// host offers. A V8 bug that guest code can reach is a bug in this process and exposes all of
    /// its memory. When V8 itself runs out of memory, it ends the process.
    ///
    /// **The thread may never end.** Some of V8's steps cannot be interrupted, such as
    /// `Array.prototype.shift.call({length: 2**53 - 1})`. The run still returns at most half a
    /// second after the end of the grace. The session is then closed, and the host no longer serves
    /// the guest. But the thread uses processor time until the process ends.
    /// [`Engine::lost_threads`](crate::Engine::lost_threads) counts such threads; while there are
    /// eight of them, no further session on a thread can start.
    ///
    /// The first session installs V8's handler for `SIGSEGV` in this process: WebAssembly code does
    /// not check the bounds of its memory, and accesses beyond them become errors of the guest. The
    /// handler leaves all other faults to the handler that was there before. A handler that is
    /// installed later has to call this one first; without it, such an access of a guest ends the
    /// process.
    Thread,
    /// In a separate process, which holds only V8 and one session. The default on Linux.
    ///
    /// The boundary is the kernel's. A worker that crashes, runs out of memory or is killed ends
    /// only its own session. Code that takes over V8 finds an empty environment, no files and no
    /// network. The kernel kills the worker for system calls that it does not need. A layer that
    /// the kernel refuses is missing; the [`IsolationReport`] names it and the reason.
    ///
    /// It does not prevent side channels between processes on one processor, and a worker can use
    /// up its share of processor time and memory.
    Process,
}

impl Default for Isolation {
    fn default() -> Self {
        if cfg!(target_os = "linux") { Self::Process } else { Self::Thread }
    }
}

/// A layer of [`Isolation::Process`]. The variants are in the order of [`ALL`](Self::ALL).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layer {
    /// The session has a separate process, which shares no writable memory with the host and can
    /// crash without it.
    Process,
    /// The worker has no environment variables, so it finds no secret of the host there.
    EmptyEnvironment,
    /// The worker starts with only the descriptors 0, 1 and 2: the socket to the host, and
    /// `/dev/null` twice.
    Descriptors,
    /// No program that the worker starts could gain privileges (`no_new_privs`).
    NoNewPrivileges,
    /// The worker leaves no core dump, and other processes of its user cannot trace it.
    NotDumpable,
    /// The worker has its own user namespace, in which its user is nobody.
    UserNamespace,
    /// The root directory is empty and read-only, in a mount namespace without other mounts.
    MountNamespace,
    /// The network namespace has only a loopback interface, which is down.
    NetworkNamespace,
    /// The worker cannot reach shared memory, semaphores or message queues of other processes.
    IpcNamespace,
    /// The worker has process ids of its own, and the kernel kills it and all its copies when the
    /// process that made the first of them ends. Only for sessions that can be
    /// [forked](crate::SandboxBuilder::forkable).
    PidNamespace,
    /// The worker has no capabilities and can gain none.
    Capabilities,
    /// Landlock denies every path. On kernels that support it, it also denies TCP and access to
    /// other processes.
    Landlock,
    /// Resource limits: no new descriptors, processes or files, no locked memory, and a limit on
    /// writable memory.
    ResourceLimits,
    /// The filter permits only the system calls that running code needs. Any other call kills the
    /// worker.
    Seccomp,
}

/// Whether a [`Layer`] is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LayerState {
    /// The layer is in force. The text holds details and may be empty.
    Enforced(String),
    /// The layer is not in force. The text gives the reason.
    Missing(String),
}

/// The layers of isolation that are in force for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationReport {
    isolation: Isolation,
    layers: BTreeMap<Layer, LayerState>,
}

/// Where sessions run, the program of their workers, the required layers, and how isolates wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Confinement {
    pub(crate) isolation: Isolation,
    /// `None`: the program is searched for.
    pub(crate) worker: Option<PathBuf>,
    pub(crate) required: Vec<Layer>,
    pub(crate) worker_start: WorkerStart,
    pub(crate) busy_wait: bool,
    pub(crate) worker_niceness: u8,
}

impl Default for Confinement {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            worker: None,
            required: Vec::new(),
            worker_start: WorkerStart::default(),
            busy_wait: true,
            worker_niceness: 0,
        }
    }
}

/// How the process of a worker starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkerStart {
    /// Copied: from the third session of a kind on, a worker is a copy (`fork`) of a process that
    /// has booted an interpreter and has run no guest code.
    ///
    /// It starts in milliseconds and shares all memory that it does not write to. However, all
    /// these workers have their code and data at the same addresses, and share their namespaces.
    /// What an attacker who took over V8 in one session learns of these is true in other sessions
    /// too.
    #[default]
    Fork,
    /// Anew: every worker is a new process of the worker program.
    Fresh,
}

impl Confinement {
    /// Rejects layers that cannot be in force with this isolation.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let Some(layer) = self.required.first() else { return Ok(()) };
        match self.isolation {
            Isolation::Process => Ok(()),
            Isolation::Thread => {
                let (thread, process) = (Isolation::Thread, Isolation::Process);
                let message = format!(
                    "the layer {layer} is required, and isolation `{thread}` has none; `{process}` \
                     has"
                );
                Err(Error::new(ErrorKind::Config, message))
            }
        }
    }
}

/// A name that belongs to no [`Layer`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no isolation layer `{0}`; there are {names}", names = names())]
pub struct UnknownLayer(String);

impl Isolation {
    /// Returns the name: `thread` or `process`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Process => "process",
        }
    }
}

impl Layer {
    /// All layers, in the order of the variants.
    pub const ALL: &[Self] = &[
        Self::Process,
        Self::EmptyEnvironment,
        Self::Descriptors,
        Self::NoNewPrivileges,
        Self::NotDumpable,
        Self::UserNamespace,
        Self::MountNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::PidNamespace,
        Self::Capabilities,
        Self::Landlock,
        Self::ResourceLimits,
        Self::Seccomp,
    ];

    /// Returns the layer's stable name, such as `no-new-privileges` or `seccomp`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::EmptyEnvironment => "empty-environment",
            Self::Descriptors => "descriptors",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::NotDumpable => "not-dumpable",
            Self::UserNamespace => "user-namespace",
            Self::MountNamespace => "mount-namespace",
            Self::NetworkNamespace => "network-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::PidNamespace => "pid-namespace",
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::ResourceLimits => "resource-limits",
            Self::Seccomp => "seccomp",
        }
    }
}

impl LayerState {
    /// Returns `true` if the layer is in force.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        matches!(self, Self::Enforced(_))
    }

    /// Returns the details of a layer that is in force, or the reason why it is missing.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Enforced(text) | Self::Missing(text) => text,
        }
    }
}

impl IsolationReport {
    /// Makes the report of [`Isolation::Thread`]: no layer is in force.
    #[must_use]
    pub fn thread() -> Self {
        let reason = if cfg!(target_os = "linux") {
            "the session is a thread of its host"
        } else {
            "the session is a thread of its host; isolation `process` exists on Linux only"
        };
        let missing = || LayerState::Missing(reason.to_owned());
        let layers = Layer::ALL.iter().map(|layer| (*layer, missing())).collect();
        Self { isolation: Isolation::Thread, layers }
    }

    /// Makes the report of [`Isolation::Process`]. A layer that `states` omits is missing.
    pub(crate) fn process(states: impl IntoIterator<Item = (Layer, LayerState)>) -> Self {
        let missing = || LayerState::Missing("it was not attempted".to_owned());
        let mut layers: BTreeMap<_, _> =
            Layer::ALL.iter().map(|layer| (*layer, missing())).collect();
        layers.extend(states);
        Self { isolation: Isolation::Process, layers }
    }

    /// Returns the same report with other details of the process.
    pub(crate) fn with_process(&self, details: String) -> Self {
        let mut report = self.clone();
        report.layers.insert(Layer::Process, LayerState::Enforced(details));
        report
    }

    /// Returns the isolation that this report describes.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Returns the state of each layer.
    pub fn layers(&self) -> impl Iterator<Item = (Layer, &LayerState)> {
        self.layers.iter().map(|(layer, state)| (*layer, state))
    }

    /// Returns `true` if a layer is in force.
    #[must_use]
    pub fn is_enforced(&self, layer: Layer) -> bool {
        self.layers.get(&layer).is_some_and(LayerState::is_enforced)
    }

    /// Returns the required layers that are not in force.
    #[must_use]
    pub fn missing(&self, required: &[Layer]) -> Vec<Layer> {
        required.iter().copied().filter(|layer| !self.is_enforced(*layer)).collect()
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Layer {
    type Err = UnknownLayer;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|layer| layer.name() == name);
        found.ok_or_else(|| UnknownLayer(name.to_owned()))
    }
}

/// Prints one line for the isolation and one for each layer: its name, `yes` or `no`, and the
/// details or reason. No newline at the end.
impl fmt::Display for IsolationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Layer::ALL.iter().map(|layer| layer.name().len());
        let width = names.max().unwrap_or_default();
        write!(f, "{:width$}  {}", "isolation", self.isolation)?;
        for (layer, state) in self.layers() {
            let answer = if state.is_enforced() { "yes" } else { "no" };
            let line = format!("{layer:width$}  {answer:3}  {}", state.text());
            write!(f, "\n{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Returns the names of all layers, for a message.
fn names() -> String {
    Layer::ALL.iter().map(|layer| layer.name()).collect::<Vec<_>>().join(", ")
}
