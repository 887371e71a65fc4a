//! The sandbox of the server by the command's options.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use isolet::blocking::Session;
use isolet::profile::copied_files::CopiedFiles;
use isolet::{Limits, SandboxBuilder};

use crate::args::policy::PolicyArgs;
use isolet_mcp::server::{Abilities, Made, Sandboxes};

/// A policy, the time of other servers' tools in a run, and where the assets are if the user has
/// named a directory.
pub(super) struct ByOptions {
    pub(super) policy: PolicyArgs,
    pub(super) host_time: Duration,
    pub(super) assets: Option<PathBuf>,
}

impl Sandboxes for ByOptions {
    fn abilities(&self) -> Abilities {
        let permissions = &self.policy.permissions;
        let reach = permissions.reach();
        Abilities {
            timeout: self.policy.timeout,
            packages: permissions.package_names(),
            access: reach.in_words(),
            writes: reach.writes,
            network: reach.network,
        }
    }

    fn make(&self, extend: &dyn Fn(SandboxBuilder, Limits) -> SandboxBuilder) -> Result<Made> {
        let packages = self.policy.permissions.packages("")?;
        let assets = self.assets.as_deref();
        let extend =
            |builder, limits: Limits| extend(builder, limits.max_host_time(self.host_time));
        let (sandbox, packages) = self.policy.sandbox_with(assets, true, &packages, extend)?;
        Ok(Made { sandbox, packages })
    }

    fn prepare(&self, session: &mut Session, packages: &[String]) -> Result<CopiedFiles> {
        let files = self.policy.permissions.prepare(session, packages)?;
        Ok(files.without_exports())
    }

    fn prepare_woken(&self, session: &mut Session) -> Result<CopiedFiles> {
        Ok(self.policy.permissions.prepare_files(session)?.without_exports())
    }
}
