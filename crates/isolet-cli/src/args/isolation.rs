//! The command's options about isolation.

use std::path::Path;

use anyhow::Result;
use isolet::{Engine, EngineBuilder, Isolation, Layer};

use crate::kit::engine::open_engine;
use crate::show::progress;

/// Whether the guest gets a process of its own.
#[derive(clap::Args)]
pub(crate) struct IsolationArgs {
    /// Run the guest in a locked-down process of its own, or on a thread of this process
    #[arg(long, value_name = "WHERE", env = "ISOLET_ISOLATION", default_value = "process")]
    #[arg(value_enum, hide_short_help = true)]
    isolation: Where,
    /// Run nothing unless this layer of isolation is in force, such as seccomp or landlock;
    /// repeatable, or comma-separated
    #[arg(long, value_name = "LAYER", value_delimiter = ',', hide_short_help = true)]
    require: Vec<Layer>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Where {
    Process,
    Thread,
}

impl IsolationArgs {
    /// Returns where guests run.
    pub(crate) fn isolation(&self) -> Isolation {
        match self.isolation {
            Where::Process => Isolation::Process,
            Where::Thread => Isolation::Thread,
        }
    }

    /// Configures an engine with this isolation.
    pub(crate) fn confine(&self, engine: EngineBuilder) -> EngineBuilder {
        engine.isolation(self.isolation()).require(self.require.iter().copied())
    }

    /// Opens an engine with this isolation.
    pub(crate) fn engine(&self, assets: Option<&Path>) -> Result<Engine> {
        open_engine(assets, &[], |assets| {
            let builder = Engine::builder().assets(assets).on_notice(progress::notice);
            Ok(self.confine(builder).build()?)
        })
    }
}
