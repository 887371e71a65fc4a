//! `isolet monty`: Monty's worker protocol on standard input and output, so that its unmodified
//! clients get CPython. They start `$MONTY_BIN subprocess` with an empty environment.

mod asks;
mod channel;
mod exceptions;
mod feed;
mod fields;
mod messages;
mod nodes;
mod outcome;
mod printer;
mod report;
mod session;
mod settings;
mod worker;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::isolation::IsolationArgs;
use crate::kit::person;
use worker::Worker;

#[derive(clap::Args)]
pub(crate) struct MontyArgs {
    #[command(flatten)]
    isolation: IsolationArgs,
}

/// Serves one client, and one session at a time, until it sends `Shutdown` or closes the pipe.
pub(crate) fn monty(args: &MontyArgs, assets: Option<&Path>) -> Result<ExitCode> {
    person::tell(
        "the protocol of Monty's workers",
        "Monty's clients start it: `MONTY_BIN=$(which isolet)`.",
    )?;
    // Ctrl-C at the client's terminal reaches this process, too. The client decides on its effect.
    if !person::is_there() {
        ctrlc::set_handler(|| {}).context("Ctrl-C cannot be left to the client")?;
    }
    let engine = args.isolation.engine(assets)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the event loop cannot start")?;
    let requests = channel::open().context("the reader thread cannot start")?;
    runtime.block_on(Worker::new(engine, requests).serve())
}
