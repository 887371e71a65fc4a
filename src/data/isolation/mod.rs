//! How a session is kept apart from the process that asked for it, and what of that is in force.

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
    /// On a thread of the process that uses the library. The default where there is no other.
    ///
    /// The boundary is the language and the ops: the guest can do only what the host's functions
    /// offer it. A bug in V8 that guest code can reach is a bug in this process and reaches
    /// everything in its memory. When V8 itself runs out of memory, it ends the process.
    ///
    /// **The thread may never end.** V8 has steps that nothing interrupts, such as
    /// `Array.prototype.shift.call({length: 2**53 - 1})`. A run returns its verdict all the same,
    /// half a second after the end of the grace at most, the session is closed, and the host does
    /// nothing more for the guest. But the thread takes processor time until the process ends;
    /// [`Engine::lost_threads`](crate::Engine::lost_threads) counts such threads, and while there
    /// are eight of them no further session gets one.
    Thread,
    /// In a process of its own, which holds V8, one session and nothing else. The default on Linux.
    ///
    /// The boundary is the kernel's. A worker that crashes, runs out of memory or is killed ends
    /// its session and nothing more. Code that takes over V8 finds an empty environment, no files,
    /// no network, and a kernel that kills the worker for system calls it does not need. Of these
    /// layers, those the kernel refused are missing; an [`IsolationReport`] says which and why.
    ///
    /// It does not hide what processors leak about each other's work, and it does not keep a worker
    /// from using its share of processor time and memory.
    Process,
}

impl Default for Isolation {
    fn default() -> Self {
        if cfg!(target_os = "linux") { Self::Process } else { Self::Thread }
    }
}

/// One of the layers that [`Isolation::Process`] is made of, in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layer {
    /// The session has a process of its own: it shares no writable memory with the host, and can
    /// crash alone.
    Process,
    /// The worker has no environment variables: no secret of the host's to find.
    EmptyEnvironment,
    /// The worker has only the descriptors 0, 1 and 2 when it starts: the socket to the host, and
    /// `/dev/null` twice.
    Descriptors,
    /// No program that the worker might start gains privileges by being started.
    NoNewPrivileges,
    /// The worker leaves no core dump, and other processes of its user cannot trace it.
    NotDumpable,
    /// The worker has a user namespace of its own, in which its user is nobody.
    UserNamespace,
    /// The root directory is an empty one that cannot be written to, in a mount namespace that has
    /// no other mount.
    MountNamespace,
    /// There is no network: no interface but a loopback that is down.
    NetworkNamespace,
    /// There is no shared memory, semaphore or message queue of other processes.
    IpcNamespace,
    /// The worker holds no capability, and none can be gained.
    Capabilities,
    /// The kernel denies every path, and where it knows how, TCP and what leads to other processes.
    Landlock,
    /// Resource limits: no new descriptors, processes or files, no locked memory, and an end to how
    /// much memory can be written to.
    ResourceLimits,
    /// Of the system calls only those are left that running code needs. Any other kills the worker.
    Seccomp,
}

/// What became of a [`Layer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LayerState {
    /// It is in force; the text says more about it, if there is more.
    Enforced(String),
    /// It is not; the text says why.
    Missing(String),
}

/// Which layers of isolation are in force for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationReport {
    isolation: Isolation,
    layers: BTreeMap<Layer, LayerState>,
}

/// Where sessions run, by what program, and what has to be in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Confinement {
    pub(crate) isolation: Isolation,
    /// `None`: the one that is found.
    pub(crate) worker: Option<PathBuf>,
    pub(crate) required: Vec<Layer>,
    /// Whether no worker may be a copy of one that has booted.
    pub(crate) fresh_workers: bool,
}

impl Confinement {
    /// Refuses to require what cannot be.
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

/// A name that is none of a [`Layer`]'s.
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
    /// All layers, in their order.
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
        Self::Capabilities,
        Self::Landlock,
        Self::ResourceLimits,
        Self::Seccomp,
    ];

    /// Returns the name, which stays as it is: `no-new-privileges`, `seccomp`.
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
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::ResourceLimits => "resource-limits",
            Self::Seccomp => "seccomp",
        }
    }
}

impl LayerState {
    /// Returns whether the layer is in force.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        matches!(self, Self::Enforced(_))
    }

    /// Returns the detail of a layer that is in force, the reason of one that is missing.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Enforced(text) | Self::Missing(text) => text,
        }
    }
}

impl IsolationReport {
    /// The report of [`Isolation::Thread`]: no layer is in force.
    #[must_use]
    pub fn thread() -> Self {
        let missing = || LayerState::Missing("the session is a thread of its host".to_owned());
        let layers = Layer::ALL.iter().map(|layer| (*layer, missing())).collect();
        Self { isolation: Isolation::Thread, layers }
    }

    /// The report of [`Isolation::Process`]. A layer that `states` does not speak of is missing.
    pub(crate) fn process(states: impl IntoIterator<Item = (Layer, LayerState)>) -> Self {
        let missing = || LayerState::Missing("it was not attempted".to_owned());
        let mut layers: BTreeMap<_, _> =
            Layer::ALL.iter().map(|layer| (*layer, missing())).collect();
        layers.extend(states);
        Self { isolation: Isolation::Process, layers }
    }

    /// Returns the isolation that this is the report of.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Returns what became of each layer.
    pub fn layers(&self) -> impl Iterator<Item = (Layer, &LayerState)> {
        self.layers.iter().map(|(layer, state)| (*layer, state))
    }

    /// Returns whether a layer is in force.
    #[must_use]
    pub fn is_enforced(&self, layer: Layer) -> bool {
        self.layers.get(&layer).is_some_and(LayerState::is_enforced)
    }

    /// Returns those of the required layers that are not in force.
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

/// A line for the isolation and one for each layer: its name, `yes` or `no`, and what there is to
/// say. No newline at the end.
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

/// The names of all layers, for a message.
fn names() -> String {
    Layer::ALL.iter().map(|layer| layer.name()).collect::<Vec<_>>().join(", ")
}
