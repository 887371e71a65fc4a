//! Policies of clients: what a sandbox allows, as plain values.

#[cfg(feature = "serve")]
use std::cmp::Ordering;
use std::collections::BTreeMap;
#[cfg(feature = "serve")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use isolet::blocking::block_on;
use isolet::{
    AuditEvent, EngineBuilder, Isolation, Layer, Limits, Mount, Permissions, Sandbox,
    SandboxBuilder, Value,
};
use serde::Deserialize;

use super::engines::{self, Engines, Terms, Wanted};
use super::sandboxes::Made;
use super::tools::{self, ToolHandler};
#[cfg(feature = "serve")]
use super::tools::{SubmitEntry, ToolEntry};
use super::{Failure, execution};

/// How many bytes a value takes on a node unless its operator says otherwise: those of other
/// clients are in the same process.
#[cfg(feature = "serve")]
const NODE_VALUE_BYTES: u64 = 32 << 20;

/// How many bytes the arguments of waiting calls take there.
#[cfg(feature = "serve")]
const NODE_CALL_BYTES: u64 = 8 << 20;

/// How many bytes the displays of a run take there.
#[cfg(feature = "serve")]
const NODE_DISPLAY_BYTES: u64 = 8 << 20;

/// What guests may do. Everything that it does not name is denied.
#[derive(Clone, Default, Deserialize)]
#[cfg_attr(feature = "serve", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    /// Functions of the client that guests can call.
    #[serde(default)]
    #[cfg_attr(feature = "serve", schema(value_type = Option<Vec<ToolEntry>>))]
    pub(super) tools: Option<Value>,
    /// The function that ends a run with a result.
    #[serde(default)]
    #[cfg_attr(feature = "serve", schema(value_type = Option<SubmitEntry>))]
    pub(super) submit: Option<Value>,
    /// Directories of the node's machine that guests see.
    #[serde(default)]
    pub(super) mounts: Vec<MountEntry>,
    /// Rules for requests to the network: `example.com`, `https://example.com:8443`.
    #[serde(default)]
    pub(super) allow_net: Vec<String>,
    /// Rules that go before those of `allow_net`.
    #[serde(default)]
    pub(super) deny_net: Vec<String>,
    /// Allows requests to every public address.
    #[serde(default)]
    pub(super) allow_public_net: bool,
    /// Headers by origin that the host adds to requests. Guests do not see them.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, BTreeMap<String, String>>,
    /// Files with further certificate authorities to trust.
    #[serde(default)]
    #[cfg_attr(feature = "serve", schema(value_type = Vec<String>))]
    pub(super) ca_files: Vec<PathBuf>,
    /// Environment variables of guests.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Names of the server's environment variables that guests see.
    #[serde(default)]
    pub(super) allow_env: Vec<String>,
    /// Requirements that every session has from its start.
    #[serde(default)]
    pub(super) packages: Vec<String>,
    /// Requirements that are loaded when the guest imports them.
    #[serde(default)]
    pub(super) allow_packages: Vec<String>,
    /// Packages or modules that the image has imported.
    #[serde(default)]
    pub(super) preload: Vec<String>,
    /// Directories with wheels.
    #[serde(default)]
    #[cfg_attr(feature = "serve", schema(value_type = Vec<String>))]
    pub(super) wheels: Vec<PathBuf>,
    /// Packages come from the cache and from `wheels` only.
    #[serde(default)]
    pub(super) offline: bool,
    /// Limits of a session and its runs.
    #[serde(default)]
    pub(super) limits: LimitsEntry,
    /// Where guests run: `process` or `thread`.
    #[serde(default)]
    #[cfg_attr(feature = "serve", schema(value_type = Option<String>))]
    pub(super) isolation: Option<Isolation>,
    /// Layers of isolation that must be in force.
    #[serde(default)]
    #[cfg_attr(feature = "serve", schema(value_type = Vec<String>))]
    pub(super) require: Vec<Layer>,
    /// Reports each access that was allowed or denied.
    #[serde(default)]
    pub(super) audit: bool,
    /// How many sessions at once may descend from one by forking. Without it, none can be forked.
    #[serde(default)]
    pub(super) forkable: Option<usize>,
}

/// A directory of the server's machine that guests see.
#[derive(Clone, Deserialize)]
#[cfg_attr(feature = "serve", derive(utoipa::ToSchema), schema(as = Mount))]
#[serde(deny_unknown_fields)]
pub(super) struct MountEntry {
    /// The directory's path on the server's machine.
    #[cfg_attr(feature = "serve", schema(value_type = String))]
    host: PathBuf,
    /// Its path in the guest.
    guest: String,
    #[serde(default)]
    mode: ModeEntry,
    /// The most bytes that a session may write.
    #[serde(default)]
    quota_bytes: Option<u64>,
    /// The most files that a session may create.
    #[serde(default)]
    quota_files: Option<u64>,
}

/// What a session may do with a mount: read it, write to its own copy, or write.
#[derive(Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "serve", derive(utoipa::ToSchema), schema(as = MountMode))]
#[serde(rename_all = "snake_case")]
enum ModeEntry {
    #[default]
    Ro,
    Overlay,
    Rw,
}

/// A limit as the library has it, which a policy has as a plain number.
trait PlainLimit: Sized {
    type Plain;

    fn read(name: &str, plain: Self::Plain) -> Result<Self, Failure>;

    #[cfg(feature = "serve")]
    fn plain(self) -> Self::Plain;
}

impl PlainLimit for Duration {
    type Plain = f64;

    fn read(name: &str, seconds: f64) -> Result<Self, Failure> {
        execution::duration(name, seconds)
    }

    #[cfg(feature = "serve")]
    fn plain(self) -> f64 {
        self.as_secs_f64()
    }
}

macro_rules! plain_limit {
    ($($type:ty)*) => {$(
        impl PlainLimit for $type {
            type Plain = Self;

            fn read(_: &str, plain: Self) -> Result<Self, Failure> {
                Ok(plain)
            }

            #[cfg(feature = "serve")]
            fn plain(self) -> Self {
                self
            }
        }
    )*};
}

plain_limit!(u64 usize);

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty as $plain:ty, $setter:ident, $default:ident,
       $option:expr;)*) => {
        /// Limits; those that are missing are the library's.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[cfg_attr(feature = "serve", derive(utoipa::ToSchema), schema(as = Limits))]
        #[serde(deny_unknown_fields)]
        pub(super) struct LimitsEntry {
            $($(#[$doc])* #[serde(default)] $name: Option<$plain>,)*
        }

        impl LimitsEntry {
            pub(super) fn limits(&self) -> Result<Limits, Failure> {
                let mut limits = Limits::default();
                $(if let Some(plain) = self.$name {
                    let name = concat!("limits.", stringify!($name));
                    limits = limits.$setter(<$type>::read(name, plain)?);
                })*
                Ok(limits)
            }
        }

        #[cfg(feature = "serve")]
        impl LimitsEntry {
            /// Only the limit of the time of a run, in seconds, if there is one.
            pub(super) fn of_run_time(run_time: Option<f64>) -> Self {
                Self { run_time, ..Self::default() }
            }

            /// Raises the limit of the time of a run to so many seconds, if it is lower.
            pub(super) fn raise_run_time(&mut self, seconds: Option<f64>) {
                self.run_time = match (self.run_time, seconds) {
                    (Some(own), Some(seconds)) => Some(own.max(seconds)),
                    (own, _) => own,
                };
            }

            /// Replaces limits by those that `other` has.
            pub(super) fn replace(&mut self, other: Self) {
                $(self.$name = other.$name.or(self.$name);)*
            }

            /// The limits of sessions of a node of whose limits nobody says anything.
            pub(super) fn of_node() -> Self {
                let default = Limits::default()
                    .max_value_bytes(NODE_VALUE_BYTES)
                    .max_call_bytes(NODE_CALL_BYTES)
                    .max_display_bytes(NODE_DISPLAY_BYTES);
                Self { $($name: Some(default.$name().plain()),)* }
            }

            /// Lowers limits to those of `most`.
            pub(super) fn lower(&mut self, most: &Self) {
                $(if let (Some(own), Some(most)) = (self.$name, most.$name) {
                    self.$name = Some(if own < most { own } else { most });
                })*
            }

            /// Checks that no limit is above those of `self`.
            pub(super) fn check(&self, asked: &Self) -> Result<(), Failure> {
                $(if let (Some(most), Some(asked)) = (self.$name, asked.$name)
                    // What is no number is not lower either.
                    && !matches!(asked.partial_cmp(&most), Some(Ordering::Less | Ordering::Equal))
                {
                    let name = stringify!($name);
                    let message = format!("`limits.{name}`: limit {most}, asked for {asked}");
                    let hint = "leave it out, or ask the operator to raise it in the ceiling";
                    return Err(Failure::denied(message).with_hint(hint));
                })*
                Ok(())
            }
        }
    };
}

isolet::for_each_limit!(limits);

impl Policy {
    pub(crate) fn read(policy: Value) -> Result<Self, Failure> {
        isolet::from_value(policy)
            .map_err(|error| Failure::config(format!("the policy is invalid: {error}")))
    }

    /// The memory of a session, in bytes.
    #[cfg(feature = "serve")]
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.limits.memory_bytes.unwrap_or(Limits::default().memory_bytes())
    }

    /// The most bytes of a value.
    #[cfg(feature = "serve")]
    pub(super) fn value_bytes(&self) -> u64 {
        self.limits.value_bytes.unwrap_or(NODE_VALUE_BYTES)
    }

    #[cfg(feature = "serve")]
    pub(super) fn is_forkable(&self) -> bool {
        self.forkable.is_some()
    }

    #[cfg(feature = "serve")]
    pub(crate) fn has_public_net(&self) -> bool {
        self.allow_public_net
    }

    /// Fails if the guests of this policy could change a file or directory of the node. `what`
    /// names it.
    #[cfg(feature = "serve")]
    pub(crate) fn check_out_of_reach(&self, what: &str, path: &Path) -> Result<(), Failure> {
        let mut permissions = Permissions::none();
        for mount in self.mounts.iter().filter(|mount| mount.is_writable()) {
            permissions = permissions.mount(&mount.guest, mount.open()?)?;
        }
        Ok(permissions.check_out_of_reach(what, path)?)
    }

    /// Returns the files with the authorities that it trusts.
    #[cfg(feature = "serve")]
    pub(crate) fn ca_files(&self) -> &[PathBuf] {
        &self.ca_files
    }

    /// Returns the paths of this machine that it names.
    #[cfg(feature = "serve")]
    pub(super) fn host_paths(&self) -> impl Iterator<Item = &PathBuf> {
        let mounts = self.mounts.iter().map(|mount| &mount.host);
        mounts.chain(&self.wheels).chain(&self.ca_files)
    }

    /// Returns the paths of mounts as guests see them.
    #[cfg(feature = "serve")]
    pub(super) fn mount_points(&self) -> Vec<&str> {
        self.mounts.iter().map(|mount| &*mount.guest).collect()
    }

    /// Whether it has what names files, variables and processes of this machine.
    #[cfg(feature = "serve")]
    pub(super) fn has_what_operators_set(&self) -> bool {
        !self.mounts.is_empty()
            || !self.allow_env.is_empty()
            || !self.ca_files.is_empty()
            || !self.wheels.is_empty()
            || !self.preload.is_empty()
            || !self.require.is_empty()
            || self.offline
            || self.audit
            || self.isolation.is_some()
    }

    /// Makes the sandbox. `handler` makes what a tool of a name does. `audit` is told of each
    /// access, and asked before it, if the policy asks for it.
    pub(super) fn build(
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
        let wanted = self.wanted(engines);
        let isolation = wanted.isolation;
        let mut packages = self.packages.clone();
        let mut engine = None;
        if self.may_start_imported(&limits) {
            let time = terms.import_time.unwrap_or(limits.run_time());
            let time = time.min(EngineBuilder::IMPORT_TIME);
            engine = engines.imported(&self.imported(&wanted), &permissions, terms, time)?;
            if engine.is_some() {
                packages.clear();
            }
        }
        let engine = match engine {
            Some(engine) => engine,
            None => engines.get(&wanted, &permissions, terms)?.ok_or_else(given_up)?,
        };
        let mut builder = Sandbox::builder(&engine)
            .tenant(terms.owner.as_str())
            .limits(limits.clone())
            .permissions(permissions)
            .isolation(isolation)
            .require(self.require.iter().copied());
        if let Some(copies) = self.forkable {
            builder = builder.forkable(copies);
        }
        builder = self.add_tools(builder, &handler)?;
        if self.audit {
            builder = builder.on_audit(audit).audit_gate(gate);
        }
        let sandbox = builder.build()?;
        if terms.resolves && !packages.is_empty() {
            let resolve = || block_on(sandbox.resolve_packages(&packages));
            engines.resolved(&self.loaded(&wanted), terms, resolve)?;
        }
        if terms.is_given_up() {
            return Err(given_up());
        }
        Ok(Made { sandbox, packages, grace: limits.grace() })
    }

    /// Whether all is there that [`build`](Self::build) would make or fetch.
    #[cfg(feature = "serve")]
    pub(super) fn has_its_packages(&self, engines: &Engines) -> bool {
        let wanted = self.wanted(engines);
        if !engines.has(&wanted).unwrap_or_default() && !self.preload.is_empty() {
            return false;
        }
        if self.packages.is_empty() {
            return true;
        }
        // If the limits are invalid, it is refused at once.
        let Ok(limits) = self.limits.limits() else { return true };
        let has_image = if self.may_start_imported(&limits) {
            engines.has(&self.imported(&wanted))
        } else {
            Some(false)
        };
        match has_image {
            Some(true) => true,
            Some(false) => engines.has(&self.loaded(&wanted)).is_some(),
            None => false,
        }
    }

    /// The engine that it needs without its packages.
    fn wanted(&self, engines: &Engines) -> Wanted {
        Wanted {
            isolation: self.isolation.unwrap_or_else(|| engines.isolation()),
            preload: self.preload.clone(),
            confined: Vec::new(),
            loaded: Vec::new(),
            sources: format!("{:?} {:?} {}", self.wheels, self.ca_files, self.offline),
        }
    }

    /// The engine whose image has imported its packages.
    fn imported(&self, wanted: &Wanted) -> Wanted {
        Wanted { confined: self.packages.clone(), ..wanted.clone() }
    }

    /// Its packages, if sessions load them.
    fn loaded(&self, wanted: &Wanted) -> Wanted {
        Wanted { loaded: self.packages.clone(), ..wanted.clone() }
    }

    /// Returns `true` if it makes no difference for the packages whether an image has imported
    /// them: there is nothing that they could read then, the audit log does not miss them, and the
    /// sessions have room for all that they import. An image that has imported them has no
    /// templates, which sessions that can be forked need.
    fn may_start_imported(&self, limits: &Limits) -> bool {
        !self.packages.is_empty()
            && self.preload.is_empty()
            && self.env.is_empty()
            && self.allow_env.is_empty()
            && !self.audit
            && self.forkable.is_none()
            && limits.memory_bytes() >= engines::IMAGE_MEMORY_BYTES
    }

    fn add_tools(
        &self,
        mut builder: SandboxBuilder,
        handler: &dyn Fn(&str) -> ToolHandler,
    ) -> Result<SandboxBuilder, Failure> {
        if let Some(tools) = &self.tools {
            for tool in tools::read(tools.clone(), handler)? {
                builder = builder.tool(tool);
            }
        }
        if let Some(submit) = self.submit.as_ref().filter(|submit| !submit.is_none()) {
            let (name, fields) = tools::read_submit(submit.clone())?;
            builder = builder.submit_as(name, fields);
        }
        Ok(builder)
    }

    fn permissions(&self) -> Result<Permissions, Failure> {
        let mut permissions = Permissions::none();
        for mount in &self.mounts {
            permissions = permissions.mount(&mount.guest, mount.open()?)?;
        }
        for rule in &self.allow_net {
            permissions = permissions.allow_net(rule)?;
        }
        for rule in &self.deny_net {
            permissions = permissions.deny_net(rule)?;
        }
        if self.allow_public_net {
            permissions = permissions.allow_public_net();
        }
        for (origin, headers) in &self.headers {
            for (name, value) in headers {
                permissions = permissions.inject_header(origin, name, value)?;
            }
        }
        for file in &self.ca_files {
            permissions = permissions.ca_file(file)?;
        }
        for (name, value) in &self.env {
            permissions = permissions.env(name, value);
        }
        for name in &self.allow_env {
            permissions = permissions.allow_env(name)?;
        }
        for package in self.packages.iter().chain(&self.allow_packages) {
            permissions = permissions.allow_package(package)?;
        }
        for directory in &self.wheels {
            permissions = permissions.wheels(directory);
        }
        Ok(if self.offline { permissions.offline_packages() } else { permissions })
    }
}

fn given_up() -> Failure {
    Failure::config("the sandbox was not made: nobody waits for it any more")
}

impl MountEntry {
    #[cfg(feature = "serve")]
    fn is_writable(&self) -> bool {
        matches!(self.mode, ModeEntry::Rw)
    }

    fn open(&self) -> Result<Mount, Failure> {
        let mut mount = match self.mode {
            ModeEntry::Ro => Mount::read_only(&self.host)?,
            ModeEntry::Overlay => Mount::overlay(&self.host)?,
            ModeEntry::Rw => Mount::read_write(&self.host)?,
        };
        if let Some(bytes) = self.quota_bytes {
            mount = mount.quota_bytes(bytes);
        }
        if let Some(files) = self.quota_files {
            mount = mount.quota_files(files);
        }
        Ok(mount)
    }
}
