//! What a node is, and what the sessions of a tenant may do, as its clients may read it: nothing of
//! the machine beside what guests see.

use std::time::Duration;

use isolet::Isolation;
use serde::Serialize;

use super::discretion::without_paths;
use super::{ImplicitGrants, Node, Tenant};
use crate::core::limits::LimitsEntry;
use crate::core::policy::Policy;
use crate::core::{AllowedMount, Failure};

/// What sessions may do without asking for it.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Allowance {
    /// Rules of the network, as in a policy.
    allow_net: Vec<String>,
    deny_net: Vec<String>,
    allow_public_net: bool,
    mounts: Vec<AllowedMount>,
    /// The names of environment variables.
    env: Vec<String>,
    /// The environment variables with placeholders of secrets.
    secrets: Vec<String>,
    /// Requirements that every session has from its start.
    packages: Vec<String>,
    /// Requirements that are loaded when the guest imports them.
    allow_packages: Vec<String>,
    /// All limits of a session and its runs.
    limits: LimitsEntry,
}

/// The most that a client may ask for.
#[derive(Serialize, utoipa::ToSchema)]
pub struct MostAllowed {
    /// Rules of the network. A session may ask for these and for narrower ones.
    pub(super) allow_net: Vec<String>,
    pub(super) allow_public_net: bool,
    /// Names of packages; `*` stands for all.
    pub(super) packages: Vec<String>,
    /// The maximum `forkable` of a session.
    pub(super) forkable: usize,
    /// The highest limits.
    pub(super) limits: LimitsEntry,
}

impl Node {
    /// Returns how long the node has been there.
    pub fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns where sessions run.
    pub fn isolation(&self) -> Isolation {
        self.settings.policy.isolation.unwrap_or_else(|| self.service.isolation())
    }

    /// Returns `true` if the node has a console for browsers.
    pub fn has_console(&self) -> bool {
        self.settings.console
    }

    /// Returns what a tenant's sessions may do without asking for it, and the most that they may
    /// ask for.
    ///
    /// # Errors
    ///
    /// Fails if the tenant may have no session with the node's policy.
    pub fn allowed(&self, tenant: &Tenant) -> Result<(Allowance, MostAllowed), Failure> {
        let grants = ImplicitGrants::default();
        let policy = self.admitted(tenant, Policy::default(), &grants, false)?;
        let most = tenant.ceiling.most(&self.settings.policy);
        Ok((Allowance::of(policy), most))
    }

    /// Returns how many sessions a tenant may have.
    pub fn most_sessions(&self, tenant: &Tenant) -> usize {
        tenant.most_sessions(self.settings.max_sessions)
    }
}

impl Allowance {
    fn of(policy: Policy) -> Self {
        let named = |packages: &[String]| packages.iter().map(|one| without_paths(one)).collect();
        let mut env: Vec<_> = policy.env.into_keys().chain(policy.allow_env).collect();
        env.sort_unstable();
        env.dedup();
        Self {
            allow_net: policy.allow_net,
            deny_net: policy.deny_net,
            allow_public_net: policy.allow_public_net,
            mounts: policy.mounts.into_iter().map(AllowedMount::of).collect(),
            env,
            secrets: policy.secrets.into_keys().collect(),
            packages: named(&policy.packages),
            allow_packages: named(&policy.allow_packages),
            limits: policy.limits,
        }
    }
}
