//! `isolet serve`: the service on standard input and output, for the program that has started it,
//! and on a socket, for many clients. See `docs/reference/protocol.md` and
//! `docs/reference/http-api.md`.

#[cfg(feature = "serve")]
mod http;
mod parent;
mod stdio;
mod wire;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use isolet::{Engine, EngineBuilder};

use self::wire::Wire;
use super::isolation::IsolationArgs;
use super::{assets, heap, progress};
use crate::service::Engines;

/// The maximum number of sessions over a pipe.
const MAX_SESSIONS: usize = 10_000;

/// How much nicer a node's workers are than the node, which answers for all of them: a guest that
/// computes, or a thousand workers that end with another node, hold it up less.
const NODE_WORKER_NICENESS: u8 = 10;

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("where").required(true))]
pub(super) struct ServeArgs {
    /// Speak on standard input and output
    #[arg(long, group = "where")]
    stdio: bool,
    /// How messages are encoded: as JSON, or in Python's marshal format
    #[arg(long, value_name = "ENCODING", value_enum, default_value_t)]
    wire: Wire,
    #[cfg(feature = "serve")]
    #[command(flatten)]
    http: http::HttpArgs,
    /// Maximum number of open sessions; one more fails [default: 10000 with `--stdio`,
    /// 1000 with `--listen`]
    #[arg(long, value_name = "COUNT")]
    max_sessions: Option<usize>,
    #[command(flatten)]
    isolation: IsolationArgs,
}

impl ServeArgs {
    /// Whether it speaks with the program that has started it, and no other.
    pub(super) fn is_pipe(&self) -> bool {
        self.stdio
    }
}

/// Serves until the client, or a signal, ends it.
pub(super) fn serve(args: &ServeArgs, assets: Option<&Path>) -> Result<ExitCode> {
    #[cfg(feature = "serve")]
    if !args.stdio {
        heap::give_back_large_blocks();
        return http::serve(&args.http, args.max_sessions, |most, runtime| {
            engines(args, assets, most, |builder| {
                // The sessions of a node's clients share its processors.
                let builder = builder.busy_wait(false).worker_niceness(NODE_WORKER_NICENESS);
                builder.event_loop(runtime.clone())
            })
        });
    }
    debug_assert!(args.stdio, "the only other way to be called");
    parent::end_with_it()?;
    let max_sessions = args.max_sessions.unwrap_or(MAX_SESSIONS);
    let engines = engines(args, assets, max_sessions, Ok)?;
    stdio::serve(args.wire, engines)
}

fn engines(
    args: &ServeArgs,
    assets: Option<&Path>,
    max_sessions: usize,
    adjust: impl Fn(EngineBuilder) -> Result<EngineBuilder, isolet::Error>,
) -> Result<Engines> {
    let base = assets::open_engine(assets, &[], |assets| {
        let builder = Engine::builder().assets(assets).max_sessions(max_sessions);
        let builder = builder.on_notice(progress::notice);
        let builder = adjust(args.isolation.confine(builder))?;
        // The first session does not wait for the image, and assets that are missing are fetched.
        let what = "making the memory image, which takes some seconds and happens once";
        progress::said(what, || builder.clone().build())?;
        Ok(builder)
    })?;
    Ok(Engines::new(base, args.isolation.isolation()))
}

/// Ends the process, and with it all workers. No thread that could do so in a milder way is left
/// when the client has gone: any of them may be busy with a guest.
#[expect(clippy::exit, reason = "the workers notice it, and nothing else has to be put in order")]
fn end(status: u8) -> ! {
    std::process::exit(status.into())
}
