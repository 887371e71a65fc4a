//! `isolet serve`: the service on standard input and output, for the program that has started it,
//! and on a socket, for many clients. See `docs/reference/protocol.md` and
//! `docs/reference/http-api.md`.

use crate::kit::engine::{find_packages, open_engine};
use crate::kit::environment::environment;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use isolet::{Engine, EngineBuilder, SetImages};
use isolet_serve::http::{self, NODE_WORKER_NICENESS, NodeOptions, RequestLogFormat};
use isolet_serve::{Wire, stdio};
use isolet_service::core::Engines;
use isolet_support::socket::Address;

use crate::args::isolation::IsolationArgs;
use crate::kit::heap;
use crate::kit::person;
use crate::show::progress;

/// The maximum number of sessions over a pipe.
const MAX_SESSIONS: usize = 10_000;

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("where").required(true))]
pub(crate) struct ServeArgs {
    /// Speak on standard input and output
    #[arg(long, group = "where")]
    stdio: bool,
    /// How messages are encoded: as JSON, or in Python's marshal format
    #[arg(long, value_name = "ENCODING", value_enum, default_value_t)]
    wire: Encoding,
    /// Serve many clients over HTTP, at ADDRESS:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS", group = "where")]
    listen: Option<Address>,
    /// File with the node's tenants, limits and permissions [default: everybody on this machine,
    /// and nothing is allowed]
    #[arg(long, value_name = "FILE", requires = "listen")]
    config: Option<PathBuf>,
    /// The node's name, which is a part of its sessions' ids
    #[arg(long, value_name = "NAME", requires = "listen", default_value = "node")]
    name: String,
    /// Directory in which durable sessions are recorded, so that the node goes on with them when it
    /// is started again [default: there are none]
    #[arg(long, value_name = "DIR", requires = "listen")]
    journals: Option<PathBuf>,
    /// Write a line on standard error for each request, and for the node's start and end: as
    /// text, as JSON, or none [default: text if standard error is a terminal, else off]
    #[arg(long, value_name = "FORMAT", value_enum, requires = "listen")]
    log: Option<LogFormat>,
    /// Serve no console for browsers at `/`
    #[arg(long, requires = "listen")]
    no_console: bool,
    /// End when the process that has started it ends
    #[arg(long, requires = "listen")]
    die_with_parent: bool,
    /// Maximum number of open sessions; one more fails [default: 10000 with `--stdio`; with
    /// `--listen` one for each 10 MiB of memory, at most 2500]
    #[arg(long, value_name = "COUNT")]
    max_sessions: Option<usize>,
    /// Let sessions import packages of the bundle in a directory, or of `none` [default:
    /// `$ISOLET_BUNDLE`, or isolet-science where it is installed]
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    isolation: IsolationArgs,
}

/// How messages are encoded: as JSON, or in Python's `marshal` format, version 2.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Encoding {
    #[default]
    Json,
    Marshal,
}

/// How requests are logged.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
    Off,
}

impl From<LogFormat> for RequestLogFormat {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
            LogFormat::Off => Self::Off,
        }
    }
}

impl From<Encoding> for Wire {
    fn from(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Json => Self::Json,
            Encoding::Marshal => Self::Marshal,
        }
    }
}

impl ServeArgs {
    /// Returns `true` if the server's one client is the program that has started it.
    pub(crate) fn is_pipe(&self) -> bool {
        self.stdio
    }
}

/// Serves until the client, or a signal, ends it.
pub(crate) fn serve(args: &ServeArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let Some(address) = &args.listen else {
        let max_sessions = args.max_sessions.unwrap_or(MAX_SESSIONS);
        person::tell(
            "its own protocol, docs/reference/protocol.md,",
            "A program starts it, such as the Python package; `isolet serve --listen ADDRESS:PORT` \
             serves HTTP.",
        )?;
        match stdio::serve(args.wire.into(), || engines(args, assets, max_sessions, Ok))? {}
    };
    heap::give_back_large_blocks();
    let options = NodeOptions {
        address: address.clone(),
        config: args.config.clone(),
        environment: environment(),
        name: args.name.clone(),
        journals: args.journals.clone(),
        max_sessions: args.max_sessions,
        log: args.log.map(RequestLogFormat::from),
        console: !args.no_console,
        dies_with_parent: args.die_with_parent,
    };
    http::serve(&options, |most, runtime| {
        engines(args, assets, most, |builder| {
            // The sessions of a node's clients share its processors.
            let builder = builder.busy_wait(false).worker_niceness(NODE_WORKER_NICENESS);
            builder.event_loop(runtime.clone())
        })
    })?;
    Ok(ExitCode::SUCCESS)
}

fn engines(
    args: &ServeArgs,
    assets: Option<&Path>,
    max_sessions: usize,
    adjust: impl Fn(EngineBuilder) -> Result<EngineBuilder, isolet::Error>,
) -> Result<Engines> {
    let base = open_engine(assets, &[], |assets| {
        let builder = Engine::builder().assets(assets).max_sessions(max_sessions);
        let builder = builder.on_notice(progress::notice);
        let mut builder = adjust(args.isolation.confine(builder))?;
        if let Some(bundle) = find_packages(args.bundle.as_deref())? {
            builder = builder.bundle(bundle).set_images(SetImages::Make);
        }
        // The first session does not wait for the image, and assets that are missing are fetched.
        let what = "making the memory image, which takes some seconds and happens once";
        progress::said(what, || builder.clone().build())?;
        Ok(builder)
    })?;
    Ok(Engines::new(base, args.isolation.isolation()))
}
