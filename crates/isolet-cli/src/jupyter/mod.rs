//! `isolet jupyter`: the kernel of Jupyter, and the kernelspec by which Jupyter finds it.

mod directories;
mod install;
mod kernel;
mod spec;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Command;

use crate::args::policy::PolicyArgs;

#[derive(clap::Subcommand)]
pub(crate) enum JupyterCommand {
    /// Write a kernelspec, so that Jupyter offers isolet as a kernel. Cells may reach what the
    /// options allow, and nothing else
    Install(Box<install::InstallArgs>),
    /// Remove a kernelspec that `install` has written
    Uninstall(install::UninstallArgs),
    /// Run the kernel, as Jupyter does
    Kernel(Box<kernel::KernelArgs>),
}

/// What a kernel may do, which its kernelspec keeps.
#[derive(clap::Args)]
// A person waits for a cell, and can interrupt it.
#[command(mut_arg("timeout", |argument| argument.default_value("none")))]
pub(crate) struct KernelOptions {
    /// Pass HTML, JavaScript and widgets on to Jupyter as cells made them. They run in Jupyter's
    /// page, with your rights: by them, code can start another kernel, which is no sandbox
    #[arg(long)]
    trust_output: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// `command` is the definition of isolet's command line.
pub(crate) fn jupyter(
    subcommand: JupyterCommand,
    assets: Option<&Path>,
    command: Command,
) -> Result<ExitCode> {
    match subcommand {
        JupyterCommand::Install(args) => install::install(*args, assets, command),
        JupyterCommand::Uninstall(args) => install::uninstall(&args),
        JupyterCommand::Kernel(args) => kernel::kernel(*args, assets),
    }
}
