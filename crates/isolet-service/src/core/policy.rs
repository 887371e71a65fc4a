//! Policies of clients: the permissions and limits of a sandbox, as plain values.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use isolet::blocking::block_on;
use isolet::{
    AuditEvent, EngineBuilder, Isolation, Layer, Limits, Permissions, Sandbox, SandboxBuilder,
    Value,
};
use serde::{Deserialize, Serialize};

use super::Failure;
use super::engines::{self, EngineKey, Engines, Sources, Terms};
use super::entries::{MountEntry, SecretEntry};
use super::limits::LimitsEntry;
use super::limits::NODE_VALUE_BYTES;
use super::sandboxes::Made;
use super::tools::{SubmitEntry, ToolEntry, ToolHandler};

/// What guests may do. Everything that it does not name is denied.
#[derive(Clone, Default, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Functions of the client that guests can call.
    #[serde(default)]
    pub(crate) tools: Option<Vec<ToolEntry>>,
    /// The function that ends a run with a result.
    #[serde(default)]
    pub(crate) submit: Option<SubmitEntry>,
    /// Directories of the node's machine that guests see.
    #[serde(default)]
    pub(crate) mounts: Vec<MountEntry>,
    /// Rules for requests to the network: `example.com`, `https://example.com:8443`.
    #[serde(default)]
    pub(crate) allow_net: Vec<String>,
    /// Rules that go before those of `allow_net`.
    #[serde(default)]
    pub(crate) deny_net: Vec<String>,
    /// Allows requests to every public address.
    #[serde(default)]
    pub(crate) allow_public_net: bool,
    /// Headers by origin that the host adds to requests. Guests do not see them.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, BTreeMap<String, String>>,
    /// Secrets by the environment variable in which guests find a placeholder, which the host
    /// replaces in requests to the secret's hosts. Guests do not see them.
    #[serde(default)]
    pub(crate) secrets: BTreeMap<String, SecretEntry>,
    /// Files with further certificate authorities to trust.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub(crate) ca_files: Vec<PathBuf>,
    /// Environment variables of guests.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Names of the server's environment variables that guests see.
    #[serde(default)]
    pub(crate) allow_env: Vec<String>,
    /// Requirements that every session has from its start.
    #[serde(default)]
    pub(crate) packages: Vec<String>,
    /// Requirements that are loaded when the guest imports them.
    #[serde(default)]
    pub(crate) allow_packages: Vec<String>,
    /// Packages or modules that the image has imported.
    #[serde(default)]
    pub(crate) preload: Vec<String>,
    /// Directories with wheels.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub(crate) wheels: Vec<PathBuf>,
    /// Whether guests may import the packages that are installed with isolet, of `isolet-science`.
    /// Default: they may.
    #[serde(default)]
    pub(crate) bundle: Option<bool>,
    /// Packages come from the cache and from `wheels` only.
    #[serde(default)]
    pub(crate) offline: bool,
    /// Limits of a session and its runs.
    #[serde(default)]
    pub(crate) limits: LimitsEntry,
    /// Where guests run: `process` or `thread`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub(crate) isolation: Option<Isolation>,
    /// Layers of isolation that must be in force.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub(crate) require: Vec<Layer>,
    /// Writes every allowed and denied access to the audit log.
    #[serde(default)]
    pub(crate) audit: bool,
    /// How many sessions at once may descend from one by forking. Without it, none can be forked.
    #[serde(default)]
    pub(crate) forkable: Option<usize>,
    /// Whether a session goes on after a run that has ended its interpreter, from its state in an
    /// idle moment before. Default: it does.
    #[serde(default)]
    pub(crate) checkpoint: Option<bool>,
    /// Makes sessions deterministic: what guests take from chance and time is derived from it.
    #[serde(default)]
    pub(crate) seed: Option<u64>,
    /// The time of day at which a deterministic session starts, in seconds since 1970. Default:
    /// 2026-01-01 in UTC.
    #[serde(default)]
    pub(crate) start_time: Option<f64>,
}

impl Policy {
    pub fn read(policy: Value) -> Result<Self, Failure> {
        isolet::from_value(policy)
            .map_err(|error| Failure::config(format!("the policy is invalid: {error}")))
    }

    /// Creates a policy with a time limit for runs, in seconds, and a memory limit, in bytes.
    pub fn of_limits(run_time: Option<f64>, memory_bytes: Option<u64>) -> Self {
        let limits = LimitsEntry { run_time, memory_bytes, ..LimitsEntry::default() };
        Self { limits, ..Self::default() }
    }

    /// Creates a policy with environment variables and network rules.
    pub fn of_environment(
        env: BTreeMap<String, String>,
        (allow_net, deny_net): (Vec<String>, Vec<String>),
    ) -> Self {
        Self { allow_net, deny_net, env, ..Self::default() }
    }

    /// Creates a policy whose sessions end with their interpreter.
    pub fn without_checkpoints() -> Self {
        Self::default().ended_with_interpreter()
    }

    /// Has a session end with its interpreter, because nothing will run in it any more.
    #[must_use]
    pub fn ended_with_interpreter(self) -> Self {
        Self { checkpoint: Some(false), ..self }
    }

    /// Has sessions go on from their journals: they end with their interpreter, cannot be forked,
    /// and a call that waits for the client when the process ends is made again.
    #[must_use]
    pub(crate) fn durable(mut self) -> Self {
        self.tools.iter_mut().flatten().for_each(ToolEntry::make_idempotent);
        Self { forkable: None, ..self.ended_with_interpreter() }
    }

    /// Returns the maximum size of the output and the displays of a run, in bytes.
    pub(crate) fn output_bytes(&self) -> u64 {
        let LimitsEntry { stdout_bytes, stderr_bytes, display_bytes, .. } = LimitsEntry::of_node();
        let own = &self.limits;
        let parts = [
            own.stdout_bytes.or(stdout_bytes),
            own.stderr_bytes.or(stderr_bytes),
            own.display_bytes.or(display_bytes),
        ];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// Returns the memory limit of a session, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.limits.memory_bytes.unwrap_or(Limits::default().memory_bytes())
    }

    /// Returns the maximum size of a value, in bytes.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.limits.value_bytes.unwrap_or(NODE_VALUE_BYTES)
    }

    pub(crate) fn is_forkable(&self) -> bool {
        self.forkable.is_some()
    }

    pub fn has_public_net(&self) -> bool {
        self.allow_public_net
    }

    /// Fails if guests of this policy could change a file or directory of the node, which `what`
    /// describes.
    pub fn check_out_of_reach(&self, what: &str, path: &Path) -> Result<(), Failure> {
        let mut permissions = Permissions::none();
        for mount in self.mounts.iter().filter(|mount| mount.is_writable()) {
            permissions = permissions.mount(&mount.guest, mount.open()?)?;
        }
        Ok(permissions.check_out_of_reach(what, path)?)
    }

    /// Returns the files with additional certificate authorities.
    pub fn ca_files(&self) -> &[PathBuf] {
        &self.ca_files
    }

    /// Returns all paths of this machine in the policy.
    pub(crate) fn host_paths(&self) -> impl Iterator<Item = &PathBuf> {
        let mounts = self.mounts.iter().map(|mount| &mount.host);
        mounts.chain(&self.wheels).chain(&self.ca_files)
    }

    /// Returns the guest paths of mounts.
    pub(crate) fn mount_points(&self) -> Vec<&str> {
        self.mounts.iter().map(|mount| &*mount.guest).collect()
    }

    /// Returns `true` if it refers to files, variables or processes of this machine.
    pub(crate) fn has_what_operators_set(&self) -> bool {
        let Self {
            mounts,
            allow_env,
            ca_files,
            wheels,
            preload,
            require,
            offline,
            audit,
            isolation,
            // Clients may ask for these, up to the ceiling.
            tools: _,
            submit: _,
            allow_net: _,
            deny_net: _,
            allow_public_net: _,
            headers: _,
            secrets: _,
            env: _,
            packages: _,
            allow_packages: _,
            limits: _,
            forkable: _,
            checkpoint: _,
            seed: _,
            start_time: _,
            // They may do without.
            bundle: _,
        } = self;
        !mounts.is_empty()
            || !allow_env.is_empty()
            || !ca_files.is_empty()
            || !wheels.is_empty()
            || !preload.is_empty()
            || !require.is_empty()
            || *offline
            || *audit
            || isolation.is_some()
    }

    /// Builds the sandbox. `handler` returns the function of a tool. If the policy asks for an
    /// audit log, `audit` is asked before each access, and receives it.
    pub(crate) fn build(
        self,
        engines: &Engines,
        terms: &Terms,
        handler: impl Fn(&str) -> ToolHandler,
        (audit, gate): (
            impl Fn(&AuditEvent) + Send + Sync + 'static,
            impl Fn(u64) -> Result<(), String> + Send + Sync + 'static,
        ),
    ) -> Result<Made, Failure> {
        let limits = self.limits.limits()?;
        let mut permissions = self.permissions()?;
        if let Some(flag) = &terms.given_up {
            permissions = permissions.give_up_packages_when(Arc::clone(flag));
        }
        let key = self.engine_key(engines);
        let isolation = key.isolation;
        let mut packages = self.packages.clone();
        let mut engine = None;
        if self.may_start_imported(&limits) {
            let time = terms.import_time.unwrap_or(limits.run_time());
            let time = time.min(EngineBuilder::IMPORT_TIME);
            engine = engines.imported(&self.imported(&key), &permissions, terms, time)?;
            if engine.is_some() {
                packages.clear();
            }
        }
        let engine = match engine {
            Some(engine) => engine,
            None => engines.get(&key, &permissions, terms)?.ok_or_else(given_up)?,
        };
        let has_checkpoints = self.checkpoint.unwrap_or(true);
        let mut builder = Sandbox::builder(&engine)
            .tenant(terms.owner.as_str())
            .limits(limits.clone())
            .permissions(permissions)
            .isolation(isolation)
            .checkpoint(has_checkpoints)
            .require(self.require.iter().copied());
        if let Some(copies) = self.forkable {
            builder = builder.forkable(copies);
        }
        if let Some(seed) = self.seed {
            builder = builder.deterministic(seed, self.start_time()?);
        } else if self.start_time.is_some() {
            return Err(Failure::config("`start_time` needs a `seed`, which makes it matter"));
        }
        builder = self.add_tools(builder, &handler)?;
        if self.audit {
            builder = builder.on_audit(audit).audit_gate(gate);
        }
        let sandbox = builder.build()?;
        if terms.resolves && !packages.is_empty() {
            let resolve = || block_on(sandbox.resolve_packages(&packages));
            engines.resolved(&self.loaded(&key), terms, resolve)?;
        }
        if terms.is_given_up() {
            return Err(given_up());
        }
        Ok(Made { sandbox, packages, has_checkpoints, grace: limits.grace() })
    }

    /// Makes sessions deterministic with this seed.
    #[must_use]
    pub fn seeded(self, seed: Option<u64>) -> Self {
        Self { seed, ..self }
    }

    fn start_time(&self) -> Result<Option<SystemTime>, Failure> {
        let Some(seconds) = self.start_time else { return Ok(None) };
        let since = Duration::try_from_secs_f64(seconds.abs());
        let after = |since| {
            let epoch = SystemTime::UNIX_EPOCH;
            if seconds < 0.0 { epoch.checked_sub(since) } else { epoch.checked_add(since) }
        };
        let time = since.ok().and_then(after);
        let no_time = || {
            Failure::config(format!("`start_time` is {seconds} seconds, which is no time of day"))
        };
        time.ok_or_else(no_time).map(Some)
    }

    /// Returns `true` if [`build`](Self::build) would not have to import or fetch packages.
    pub(crate) fn has_its_packages(&self, engines: &Engines) -> bool {
        let key = self.engine_key(engines);
        if !engines.has(&key).unwrap_or_default() && !self.preload.is_empty() {
            return false;
        }
        if self.packages.is_empty() {
            return true;
        }
        // A policy with invalid limits is refused at once.
        let Ok(limits) = self.limits.limits() else { return true };
        let has_image = if self.may_start_imported(&limits) {
            engines.has(&self.imported(&key))
        } else {
            Some(false)
        };
        match has_image {
            Some(true) => true,
            Some(false) => engines.has(&self.loaded(&key)).is_some(),
            None => false,
        }
    }

    /// Returns the key of its engine, without its packages.
    fn engine_key(&self, engines: &Engines) -> EngineKey {
        EngineKey {
            isolation: self.isolation.unwrap_or_else(|| engines.isolation()),
            preload: self.preload.clone(),
            confined: Vec::new(),
            loaded: Vec::new(),
            sources: Sources {
                wheels: self.wheels.clone(),
                ca_files: self.ca_files.clone(),
                offline: self.offline,
            },
        }
    }

    /// Returns the key of the engine whose image has imported its packages.
    fn imported(&self, key: &EngineKey) -> EngineKey {
        EngineKey { confined: self.packages.clone(), ..key.clone() }
    }

    /// Returns the key with its packages, for sessions that load them.
    fn loaded(&self, key: &EngineKey) -> EngineKey {
        EngineKey { loaded: self.packages.clone(), ..key.clone() }
    }

    /// Returns `true` if packages behave the same when an image has imported them: they could read
    /// nothing of the session, the audit log would miss no access, and the session has memory for
    /// the imports. Forkable sessions need templates, which such images do not have.
    fn may_start_imported(&self, limits: &Limits) -> bool {
        let Self {
            packages,
            preload,
            env,
            secrets,
            allow_env,
            audit,
            forkable,
            // The interpreter that imports the packages has none of these.
            tools: _,
            submit: _,
            mounts: _,
            allow_net: _,
            deny_net: _,
            allow_public_net: _,
            headers: _,
            // The sources of packages are part of an engine's key.
            ca_files: _,
            allow_packages: _,
            wheels: _,
            offline: _,
            limits: _,
            isolation: _,
            require: _,
            checkpoint: _,
            bundle: _,
            seed: _,
            start_time: _,
        } = self;
        !packages.is_empty()
            && preload.is_empty()
            && env.is_empty()
            && secrets.is_empty()
            && allow_env.is_empty()
            && !audit
            && forkable.is_none()
            && limits.memory_bytes() >= engines::IMAGE_MEMORY_BYTES
    }

    fn add_tools(
        &self,
        mut builder: SandboxBuilder,
        handler: &dyn Fn(&str) -> ToolHandler,
    ) -> Result<SandboxBuilder, Failure> {
        for tool in self.tools.iter().flatten() {
            builder = builder.tool(tool.clone().tool(handler)?);
        }
        if let Some(submit) = self.submit.clone() {
            let (name, fields) = submit.function();
            builder = builder.submit_as(name, fields);
        }
        Ok(builder)
    }

    fn permissions(&self) -> Result<Permissions, Failure> {
        let Self {
            mounts,
            allow_net,
            deny_net,
            allow_public_net,
            headers,
            secrets,
            ca_files,
            env,
            allow_env,
            packages,
            allow_packages,
            bundle,
            wheels,
            offline,
            // `build` adds these to the sandbox itself.
            tools: _,
            submit: _,
            preload: _,
            limits: _,
            isolation: _,
            require: _,
            audit: _,
            forkable: _,
            checkpoint: _,
            seed: _,
            start_time: _,
        } = self;
        let mut permissions = Permissions::none();
        if *bundle == Some(false) {
            permissions = permissions.forbid_bundle();
        }
        for mount in mounts {
            permissions = permissions.mount(&mount.guest, mount.open()?)?;
        }
        for rule in allow_net {
            permissions = permissions.allow_net(rule)?;
        }
        for rule in deny_net {
            permissions = permissions.deny_net(rule)?;
        }
        if *allow_public_net {
            permissions = permissions.allow_public_net();
        }
        for (origin, headers) in headers {
            for (name, value) in headers {
                permissions = permissions.inject_header(origin, name, value)?;
            }
        }
        for (name, secret) in secrets {
            permissions = permissions.secret(name, secret.secret())?;
        }
        for file in ca_files {
            permissions = permissions.ca_file(file)?;
        }
        for (name, value) in env {
            permissions = permissions.env(name, value);
        }
        for name in allow_env {
            permissions = permissions.allow_env(name)?;
        }
        for package in packages.iter().chain(allow_packages) {
            permissions = permissions.allow_package(package)?;
        }
        for directory in wheels {
            permissions = permissions.wheels(directory);
        }
        Ok(if *offline { permissions.offline_packages() } else { permissions })
    }
}

fn given_up() -> Failure {
    Failure::config("the sandbox was not made: nobody waits for it any more")
}
