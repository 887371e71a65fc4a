//! What guest code may reach of the host. Everything is denied until it is allowed.

pub(crate) mod env;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::data::error::{Error, ErrorKind};
use crate::fs::{Mount, MountTable};
use crate::net::rules::NetPolicy;
use crate::packages::PackagePolicy;

/// What guest code may reach of the host: files, network, environment, packages.
///
/// It starts empty, and everything that is not in it is denied:
///
/// * files: only the guest's own in-memory ones;
/// * network: none, and no name is looked up;
/// * environment: `HOME` is `/home/user`, the guest's own; nothing of the host's;
/// * packages: only Python's standard library.
///
/// A refusal is an exception in the guest, mostly `PermissionError`, and an
/// [`AuditEvent`](crate::AuditEvent) on the host.
///
/// ```no_run
/// use isolet::{Mount, Permissions};
///
/// # fn example() -> Result<(), isolet::Error> {
/// let permissions = Permissions::none()
///     .mount("/data", Mount::read_only("./data")?)?
///     .allow_net("api.example.com:443")?
///     .inject_header("https://api.example.com", "Authorization", "Bearer …")?
///     .env("TZ", "UTC")
///     .allow_package("pydantic>=2")?;
/// # let _ = permissions;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Permissions {
    pub(crate) net: NetPolicy,
    pub(crate) mounts: MountTable,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) packages: PackagePolicy,
}

impl Permissions {
    /// Permits nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Shows the guest a directory of the host at `guest`, an absolute path.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the path is not absolute or normal, or is one of the guest's system
    /// directories, or something is mounted at, above or beneath it; or if the directory overlaps
    /// with that of another mount and one of the two can be written.
    pub fn mount(mut self, guest: &str, mount: Mount) -> Result<Self, Error> {
        self.mounts.add(guest, mount)?;
        Ok(self)
    }

    /// Allows requests to what the rule covers: `HOST`, `HOST:PORT`, `HOST:*`.
    ///
    /// A host is a name (`api.example.com`), a wildcard (`*.example.com`, which covers names of one
    /// or more labels more, not `example.com` itself), an address, a network (`10.1.0.0/16`), or
    /// `localhost`. Without a port it covers all but those that browsers block. A name that
    /// resolves to an address of a private network stays denied unless a rule covers that address.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it is no rule; the error names it.
    pub fn allow_net(mut self, rule: &str) -> Result<Self, Error> {
        self.net.allow(rule).map_err(config)?;
        Ok(self)
    }

    /// Denies what the rule covers, whatever else is allowed, in any order.
    ///
    /// # Errors
    ///
    /// As [`allow_net`](Self::allow_net).
    pub fn deny_net(mut self, rule: &str) -> Result<Self, Error> {
        self.net.deny(rule).map_err(config)?;
        Ok(self)
    }

    /// Allows requests to every public address.
    pub fn allow_public_net(mut self) -> Self {
        self.net.allow_public();
        self
    }

    /// Allows requests to every address, those of this machine and of its networks too. Addresses
    /// of cloud metadata services stay denied unless a rule names them.
    pub fn dangerous_allow_all_net(mut self) -> Self {
        self.net.dangerous_allow_all();
        self
    }

    /// Makes rules without a port cover ports 80 and 443 only.
    pub fn strict_ports(mut self) -> Self {
        self.net.strict_ports();
        self
    }

    /// Has a name mean these addresses, without asking the name server. They are checked as if it
    /// had answered with them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it is no name, or no address is given.
    pub fn resolve(
        mut self,
        name: &str,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Self, Error> {
        self.net.resolve_to(name, addresses.into_iter().collect()).map_err(config)?;
        Ok(self)
    }

    /// Adds a header to every request to an origin, such as `https://api.example.com`: a credential
    /// that the guest uses and never sees.
    ///
    /// It replaces what the guest sends under that name, and a redirect to another origin does not
    /// carry it. It allows nothing by itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it is no origin or no header.
    pub fn inject_header(mut self, origin: &str, name: &str, value: &str) -> Result<Self, Error> {
        self.net.inject_header(origin, name, value).map_err(config)?;
        Ok(self)
    }

    /// Gives the guest an environment variable. The last one of a name counts.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Gives the guest the host's environment variable of that name, as it is now, if there is one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if its value is no Unicode.
    pub fn allow_env(mut self, name: &str) -> Result<Self, Error> {
        if let Some(value) = env::inherited(name)? {
            self.env.push((name.to_owned(), value));
        }
        Ok(self)
    }

    /// Allows the guest to import a package: `NAME`, or with a version as in `NAME>=2,<3`.
    ///
    /// It is resolved and fetched by the host, with all that it requires, when it is imported. See
    /// [`Session::load_packages`](crate::Session::load_packages).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if it is no requirement of a package by its name.
    pub fn allow_package(mut self, requirement: &str) -> Result<Self, Error> {
        self.packages.allow(requirement)?;
        Ok(self)
    }

    /// Takes packages from the wheels in a directory before it looks for them elsewhere.
    pub fn wheels(mut self, directory: impl Into<PathBuf>) -> Self {
        self.packages.wheels.push(directory.into());
        self
    }

    /// Says where the packages that Pyodide itself has built are: a directory, or an address with
    /// `{file}` in it. Each is compared with the digest in Pyodide's lock.
    ///
    /// They are used where the index has no wheel, as for numpy. By default they are fetched from
    /// where Pyodide publishes them.
    pub fn pyodide_packages(mut self, source: impl Into<String>) -> Self {
        self.packages.pyodide_packages = Some(source.into());
        self
    }

    /// Keeps fetched packages in this directory. By default they are in the user's cache directory.
    pub fn package_cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.packages.cache = Some(directory.into());
        self
    }

    /// Takes packages only from the cache and the directories of wheels, never from an index.
    pub fn offline_packages(mut self) -> Self {
        self.packages.offline = true;
        self
    }
}

/// Values of variables and of injected headers are left out.
impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Permissions")
            .field("net", &self.net)
            .field("mounts", &self.mounts)
            .field("env", &env)
            .field("packages", &self.packages)
            .finish()
    }
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/permissions.md")]
struct Documentation;

fn config(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Config, error.to_string())
}
