//! `isolet jupyter kernel`: the kernel that Jupyter starts, by the command's options.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use isolet::profile::copied_files::CopiedFiles;
use isolet::{Sandbox, Session, SessionState};
use isolet_jupyter::kernel::{self, Options, Sessions};
use isolet_jupyter::zmq::{self, Connection};

use super::KernelOptions;
use crate::args::policy::PolicyArgs;
use crate::show::progress;

#[derive(clap::Args)]
pub(crate) struct KernelArgs {
    /// The file in which Jupyter says where its sockets are
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(super) connection_file: PathBuf,
    #[command(flatten)]
    pub(super) options: KernelOptions,
}

/// Makes sessions by the command's options.
pub(super) struct ByOptions {
    policy: PolicyArgs,
    assets: Option<PathBuf>,
    made: Option<Made>,
}

/// What is made for the first session, and serves later ones.
struct Made {
    sandbox: Sandbox,
    packages: Vec<String>,
    /// Of the session that is open.
    files: CopiedFiles,
}

/// Serves until a front end ends the kernel, or none is there any more.
pub(super) fn kernel(args: KernelArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let KernelOptions { trust_output, policy } = args.options;
    let path = std::path::absolute(args.connection_file)?;
    let connection = Connection::read(&path)?;
    let options = Options {
        trusts_output: trust_output,
        max_output_bytes: policy.max_output,
        access: policy.permissions.reach().in_words(),
    };
    let sessions = ByOptions::new(policy, assets)?;
    let (kernel, ends) = kernel::kernel(sessions, options)?;
    let served = zmq::serve(path, connection, ends, progress::notice)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the event loop cannot start")?;
    let ended = runtime.block_on(kernel.serve());
    served.finish();
    ended?;
    Ok(ExitCode::SUCCESS)
}

impl ByOptions {
    pub(super) fn new(mut policy: PolicyArgs, assets: Option<&Path>) -> Result<Self> {
        // That of the Jupyter server is not the notebook's.
        policy.has_no_terminal = true;
        policy.permissions.refuse_export("a kernel")?;
        Ok(Self { policy, assets: assets.map(Path::to_owned), made: None })
    }

    /// Opens a session. The first one makes what is not there yet, such as the memory image.
    pub(super) fn session(&mut self) -> Result<Session> {
        let permissions = &self.policy.permissions;
        let made = if let Some(made) = &mut self.made {
            made
        } else {
            let packages = permissions.packages("")?;
            let assets = self.assets.as_deref();
            let (sandbox, packages) =
                self.policy.sandbox_with(assets, false, &packages, |builder, limits| {
                    builder.limits(kernel::limits(limits))
                })?;
            let files = CopiedFiles::default();
            self.made.insert(Made { sandbox, packages, files })
        };
        let mut session = made.sandbox.blocking().session()?;
        let progress = self.policy.progress(false);
        let files = progress.during(&progress::of_packages(&made.packages), || {
            permissions.prepare(&mut session, &made.packages)
        })?;
        made.files = files.without_exports();
        Ok(session.into())
    }
}

impl Sessions for ByOptions {
    fn open(&mut self) -> BoxFuture<'_, Result<Session>> {
        std::future::ready(self.session()).boxed()
    }

    fn settle<'a>(&'a mut self, session: &'a mut Session) -> BoxFuture<'a, Result<()>> {
        async {
            match &mut self.made {
                Some(made) if session.state() == SessionState::Ready && !made.files.is_empty() => {
                    Ok(made.files.copy_out(session).await?)
                }
                _ => Ok(()),
            }
        }
        .boxed()
    }
}
