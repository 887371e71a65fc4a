//! Permissions: what guest code may reach of the host. Everything is denied by default.

pub(crate) mod env;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::data::error::{Error, ErrorKind};
use crate::fs::{Mount, MountTable};
use crate::net::rules::{NetPolicy, Secret};
use crate::packages::{DownloadSink, PackageDownload, PackagePolicy};
use crate::support::patience::GivenUp;

/// The files, network destinations, environment variables and packages that guest code may reach.
///
/// It starts empty, and everything not allowed is denied:
///
/// * files: the guest sees only its own in-memory files;
/// * network: none, and no name is looked up;
/// * environment: only `HOME`, which is the guest's own `/home/user`; no variable of the host;
/// * packages: only Python's standard library, and the engine's
///   [bundle](crate::EngineBuilder::bundle).
///
/// A denial raises an exception in the guest, usually `PermissionError`, and reports an
/// [`AuditEvent`](crate::AuditEvent) to the host.
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
    /// Creates permissions that allow nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Mounts a directory of the host at `guest`, an absolute guest path.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if:
    /// * the guest path is not absolute or not normalised;
    /// * it is one of the guest's system directories;
    /// * another mount is at, above or beneath it;
    /// * the host directory overlaps with that of another mount and one of the two is writable.
    pub fn mount(mut self, guest: &str, mount: Mount) -> Result<Self, Error> {
        self.mounts.add(guest, mount)?;
        Ok(self)
    }

    /// Checks that no guest can change a file or directory of yours, such as a log, a store of
    /// saved sessions, or a configuration, through a directory that is mounted to be written to.
    /// `what` names it in the error. A directory must also not contain such a mount. Links on the
    /// path count as what they lead to now, and what does not exist yet as where its path leads to
    /// so far.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] with both paths, if guests could change it.
    pub fn check_out_of_reach(&self, what: &str, path: impl AsRef<Path>) -> Result<(), Error> {
        self.mounts.check_out_of_reach(what, path.as_ref())
    }

    /// Allows requests to the destinations that the rule covers: `HOST`, `HOST:PORT`, `HOST:*`.
    ///
    /// A host is a name (`api.example.com`), a wildcard (`*.example.com`), an address, a network
    /// (`10.1.0.0/16`), or `localhost`. A wildcard covers names with one or more additional labels,
    /// but not `example.com` itself. Without a port, the rule covers all ports except those that
    /// browsers block. A name that resolves to a private address stays denied unless a rule covers
    /// that address.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the rule is invalid; the error names it.
    pub fn allow_net(mut self, rule: &str) -> Result<Self, Error> {
        self.net.allow(rule).map_err(config)?;
        Ok(self)
    }

    /// Denies the destinations that the rule covers. A denial overrides everything that is allowed,
    /// in any order.
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

    /// Allows requests to every address, including those of this machine and its networks.
    /// Addresses of cloud metadata services stay denied unless a rule names them.
    pub fn dangerous_allow_all_net(mut self) -> Self {
        self.net.dangerous_allow_all();
        self
    }

    /// Makes rules without a port cover only ports 80 and 443.
    pub fn strict_ports(mut self) -> Self {
        self.net.strict_ports();
        self
    }

    /// Maps a name to these addresses, without a DNS query. They are checked like addresses from a
    /// DNS answer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the name is invalid, or no address is given.
    pub fn resolve(
        mut self,
        name: &str,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Self, Error> {
        self.net.resolve_to(name, addresses.into_iter().collect()).map_err(config)?;
        Ok(self)
    }

    /// Adds a header to every request to an origin such as `https://api.example.com`. The guest can
    /// use a credential this way without seeing it.
    ///
    /// It replaces a header of the same name that the guest sends, and is not sent when a redirect
    /// leads to another origin. It does not allow requests to the origin.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the origin or the header is invalid.
    pub fn inject_header(mut self, origin: &str, name: &str, value: &str) -> Result<Self, Error> {
        self.net.inject_header(origin, name, value).map_err(config)?;
        Ok(self)
    }

    /// Gives the guest a secret to use, which it does not see: its environment variable `name` has
    /// a placeholder, and the host puts the secret in its place in requests to the secret's hosts.
    ///
    /// The placeholder begins with `ISOLET_SECRET_`. The host fills it in where it is whole: in the
    /// value of a header, also within the base64 of `Authorization: Basic`; in the path and the
    /// query of a URL; with [`Secret::in_bodies`], in bodies. Other requests have the placeholder.
    /// Where a response of any host repeats a secret, in one of the usual encodings, the guest gets
    /// the placeholder. A guest cannot sign with a secret, as the keys of AWS need it. It does not
    /// allow requests to the hosts.
    ///
    /// While there are secrets, responses have no `Content-Length`, are decoded from gzip and
    /// deflate by the host, and fail if they have another encoding; the named hosts get no `Range`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if:
    /// * the name is not 1 to 64 letters, digits and `_`, or is that of another secret;
    /// * the secret has less than 8 or more than 4,096 bytes or has control characters, or all
    ///   secrets together have more than 16 KiB;
    /// * it is for no host, for more than 32, or one is no valid rule.
    pub fn secret(mut self, name: &str, secret: Secret) -> Result<Self, Error> {
        self.net.add_secret(name, secret).map_err(config)?;
        Ok(self)
    }

    /// Trusts the certificate authorities in a PEM file, in addition to those of Mozilla's
    /// programme: when the guest makes requests, and when the host fetches packages. It allows no
    /// request by itself. The file is read now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the file cannot be read or has no certificate that can be used.
    pub fn ca_file(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        self.packages.authorities.add_file(path.as_ref()).map_err(config)?;
        self.net.trust(self.packages.authorities.der());
        Ok(self)
    }

    /// Sets an environment variable of the guest. If a name is set twice, the last value counts.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Copies an environment variable of the host to the guest, with its present value, if it is
    /// set.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the name is invalid or the value is not Unicode.
    pub fn allow_env(mut self, name: &str) -> Result<Self, Error> {
        if let Some(value) = env::inherited(name)? {
            self.env.push((name.to_owned(), value));
        }
        Ok(self)
    }

    /// Allows the guest to import a package: `NAME`, or with a version as in `NAME>=2,<3`.
    ///
    /// The host resolves and fetches the package and its dependencies when the guest imports it.
    /// See [`Session::load_packages`](crate::Session::load_packages).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the requirement does not name a package.
    pub fn allow_package(mut self, requirement: &str) -> Result<Self, Error> {
        self.packages.allow(requirement)?;
        Ok(self)
    }

    /// Forbids the packages of the engine's [bundle](crate::EngineBuilder::bundle), which may be
    /// imported otherwise.
    pub fn forbid_bundle(mut self) -> Self {
        self.packages.forbids_bundle = true;
        self
    }

    /// Adds a directory of wheels, which is searched before all other sources. It must be
    /// [out of reach](Self::check_out_of_reach) of guests.
    pub fn wheels(mut self, directory: impl Into<PathBuf>) -> Self {
        self.packages.wheels.push(directory.into());
        self
    }

    /// Returns the directories of [`wheels`](Self::wheels).
    pub(crate) fn wheel_directories(&self) -> &[PathBuf] {
        &self.packages.wheels
    }

    /// Sets the source of Pyodide's own builds of packages: a directory, or a URL that contains
    /// `{file}`. Each file must match the digest in Pyodide's lock.
    ///
    /// These builds are used where the index has no wheel, as for numpy. Default: where Pyodide
    /// publishes them.
    pub fn pyodide_packages(mut self, source: impl Into<String>) -> Self {
        self.packages.pyodide_packages = Some(source.into());
        self
    }

    /// Sets a function that is called while packages of Pyodide's are downloaded, to show the
    /// progress. The download waits for it.
    pub fn on_package_download(
        mut self,
        sink: impl Fn(&PackageDownload) + Send + Sync + 'static,
    ) -> Self {
        self.packages.on_download = Some(DownloadSink::new(sink));
        self
    }

    /// Has packages be given up once `flag` is set, because nobody waits for them any more: what
    /// resolves, fetches or imports them then fails soon, with
    /// [`ErrorKind::Packages`] or [`ErrorKind::Start`].
    pub fn give_up_packages_when(mut self, flag: Arc<AtomicBool>) -> Self {
        self.packages.given_up = GivenUp::new(flag);
        self
    }

    /// Sets the directory in which fetched packages are kept. Default: one in the user's cache
    /// directory.
    pub fn package_cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.packages.cache = Some(directory.into());
        self
    }

    /// Takes packages only from the cache and the wheel directories, never from an index.
    pub fn offline_packages(mut self) -> Self {
        self.packages.offline = true;
        self
    }
}

/// Omits the values of variables and of injected headers.
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
#[doc = include_str!("../../../docs/concepts/permissions.md")]
struct Documentation;

fn config(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Config, error.to_string())
}
