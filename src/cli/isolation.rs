//! The command's options about isolation.

use isolet::{EngineBuilder, Isolation, Layer};

/// Whether the guest gets a process of its own.
#[derive(clap::Args)]
pub(super) struct IsolationArgs {
    /// Run the guest in a locked-down process of its own, or on a thread of this process
    #[arg(long, value_name = "WHERE", env = "ISOLET_ISOLATION", default_value = "process")]
    #[arg(value_enum)]
    isolation: Where,
    /// Run nothing unless this layer of isolation is in force, such as seccomp or landlock;
    /// repeatable, or comma-separated
    #[arg(long, value_name = "LAYER", value_delimiter = ',')]
    require: Vec<Layer>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Where {
    Process,
    Thread,
}

impl IsolationArgs {
    /// Configures an engine with this isolation.
    pub(super) fn confine(&self, engine: EngineBuilder) -> EngineBuilder {
        let isolation = match self.isolation {
            Where::Process => Isolation::Process,
            Where::Thread => Isolation::Thread,
        };
        engine.isolation(isolation).require(self.require.iter().copied())
    }
}
