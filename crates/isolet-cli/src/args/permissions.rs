//! The command's options about permissions.

use isolet_support::audit_line::line;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use isolet::blocking::Session;
use isolet::profile::copied_files::SANDBOX;
use isolet::{
    AuditEvent, Bundle, Cell, Engine, EngineBuilder, ErrorKind, Mount, MountMode, Permissions,
    SandboxBuilder, SetImages,
};

use crate::args::secrets::SecretArgs;
use crate::args::value_parsers;
use crate::kit::audit;
use crate::kit::engine::find_packages;
use crate::kit::host_files::HostFiles;
use crate::kit::refusals::Refusals;
use crate::show::progress;
use crate::show::terminal;
use isolet_service::core::IMAGE_MEMORY_BYTES;
use isolet_service::core::in_options;
use isolet_support::journal::Journal;
use isolet_support::text::on_one_line;

/// Everything is denied but what these allow. Each can be given several times.
#[derive(clap::Args)]
#[command(next_help_heading = "Permissions")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct PermissionArgs {
    /// Mount a directory in the guest, by default read-only
    ///
    /// MODE is `ro` (read-only, the default), `overlay` (writes stay in memory) or `rw` (writes
    /// change the directory).
    #[arg(long, value_name = "HOST:GUEST[:MODE]", value_parser = value_parsers::mount)]
    mount: Vec<value_parsers::MountArg>,
    /// Show the script's directory to the guest
    ///
    /// Mounts it, or without a script the current one, at /here, and starts there. Writes stay in
    /// memory.
    #[arg(long)]
    here: bool,
    /// What is shown there, if not the current directory.
    #[arg(skip)]
    shown_here: Option<PathBuf>,
    /// Write the changes in an overlay to a directory after the run
    ///
    /// The directory is created, or must be empty.
    #[arg(long, value_name = "GUEST=DIR", value_parser = value_parsers::assignment)]
    #[arg(hide_short_help = true)]
    export: Vec<(String, String)>,
    /// Copy a file to /sandbox/NAME, or mount a directory there read-only
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    allow_read: Vec<PathBuf>,
    /// Copy a file to /sandbox/NAME and write its changes back, or mount a directory there
    /// read-write
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    allow_write: Vec<PathBuf>,
    /// Allow requests to a server, such as example.com
    ///
    /// RULE is HOST, HOST:PORT, *.DOMAIN, ADDRESS, NETWORK/BITS or localhost.
    #[arg(long, value_name = "RULE")]
    allow_net: Vec<String>,
    /// Deny requests to a server, even if another option allows them
    #[arg(long, value_name = "RULE", hide_short_help = true)]
    deny_net: Vec<String>,
    /// Allow requests to every public address
    #[arg(long)]
    allow_public_net: bool,
    /// Use this address for a host name instead of asking the name server
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = value_parsers::resolution)]
    #[arg(hide_short_help = true)]
    resolve: Vec<(String, IpAddr)>,
    /// Set an environment variable of the guest
    #[arg(long, value_name = "NAME=VALUE", value_parser = value_parsers::assignment)]
    env: Vec<(String, String)>,
    /// Show a variable of isolet's own environment to the guest
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    allow_env: Vec<String>,
    #[command(flatten)]
    secrets: SecretArgs,
    /// Load packages, such as pydantic, 'rich>=14' or numpy,pandas
    ///
    /// The first start with them makes an image in which they are imported already, and later ones
    /// start from it.
    #[arg(long = "with", value_name = "PACKAGES", value_parser = value_parsers::packages)]
    packages: Vec<value_parsers::Packages>,
    /// Start from an image that has already imported packages, or modules of them
    ///
    /// `--with` does that for packages. This option does it for modules such as
    /// `sklearn.linear_model`, too, and where `--env` or `--audit` is given. The first start makes
    /// the image, which takes some seconds.
    #[arg(long, value_name = "PACKAGES", value_parser = value_parsers::packages)]
    #[arg(hide_short_help = true)]
    preload: Vec<value_parsers::Packages>,
    /// Load the packages of `--with` anew, where an image of them cannot be stored
    #[arg(long, hide_short_help = true)]
    no_image: bool,
    /// Load packages when they are imported
    #[arg(long, value_name = "PACKAGES", value_parser = value_parsers::packages)]
    #[arg(hide_short_help = true)]
    allow_package: Vec<value_parsers::Packages>,
    /// Load the packages that the script lists in its `# /// script` block
    #[arg(long, hide_short_help = true)]
    script_packages: bool,
    /// Import packages of the bundle in a directory, or of `none` [default: `$ISOLET_BUNDLE`, or
    /// isolet-science where it is installed]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    bundle: Option<PathBuf>,
    /// Look for wheels in a directory first
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    wheels: Vec<PathBuf>,
    /// Take Pyodide's packages from a directory, or from a URL that contains {file}
    #[arg(long, value_name = "SOURCE", hide_short_help = true)]
    pyodide_packages: Option<String>,
    /// Take packages only from the cache and from directories of wheels
    #[arg(long, hide_short_help = true)]
    offline: bool,
    /// Trust the certificate authorities in a PEM file, too: for requests of the guest, and to
    /// fetch packages and Pyodide
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) ca_file: Vec<PathBuf>,
    /// Append each allowed or denied access to a file, as a line of JSON
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    audit: Option<PathBuf>,
    /// That log, of a server that goes on while it cannot be written.
    #[arg(skip)]
    journal: Option<Arc<Journal>>,
    /// Why requests were refused.
    #[arg(skip)]
    pub(crate) refusals: Refusals,
}

/// The guest path at which `--here` mounts a directory.
const HERE: &str = "/here";

/// What a guest may reach outside of its session.
pub(crate) struct Reach {
    /// Whether it may change files of the host.
    pub(crate) writes: bool,
    /// Whether it may send requests.
    pub(crate) network: bool,
    mounts: Vec<String>,
    servers: Vec<String>,
}

impl Reach {
    /// Returns it in words; nothing if there is nothing.
    pub(crate) fn in_words(&self) -> String {
        let mut words = Vec::new();
        if !self.mounts.is_empty() {
            words.push(format!("the files in {}", self.mounts.join(", ")));
        }
        if !self.servers.is_empty() {
            words.push(format!("HTTP to {}", self.servers.join(", ")));
        }
        words.join(" and ")
    }
}

impl PermissionArgs {
    /// Returns the directory that is mounted at `/here`.
    fn here(&self) -> Option<PathBuf> {
        let current = || self.here.then(|| PathBuf::from("."));
        self.shown_here.clone().or_else(current)
    }

    /// Makes `--here`, if it is given, mount this directory instead of the current one.
    pub(crate) fn show_here(&mut self, directory: &Path) {
        if self.here {
            self.shown_here = Some(directory.to_path_buf());
        }
    }

    /// Mounts this directory as `--here` does, unless the guest sees it already.
    pub(crate) fn show(&mut self, directory: &Path) {
        if self.guest_path(directory).is_none() {
            self.shown_here = Some(directory.to_path_buf());
        }
    }

    /// Mounts a directory read-only at this guest path, besides what the options mount.
    pub(crate) fn show_at(&mut self, directory: &Path, guest: String) -> Result<()> {
        let host = directory.to_str().map(str::to_owned);
        let host = host.with_context(|| format!("`{}` is not UTF-8", directory.display()))?;
        self.mount.push(value_parsers::MountArg { host, guest, mode: MountMode::ReadOnly });
        Ok(())
    }

    /// Takes back what the options allow of the network. Returns whether that was anything.
    pub(crate) fn deny_network(&mut self) -> bool {
        let had = self.allow_public_net || !self.allow_net.is_empty();
        self.allow_public_net = false;
        self.allow_net.clear();
        had
    }

    /// Returns the guest path of a host file or directory, by the innermost mount that contains it.
    pub(crate) fn guest_path(&self, host: &Path) -> Option<String> {
        let here = self.here().map(|host| (host, HERE.to_owned()));
        let mounts =
            self.mount.iter().map(|mount| (mount.host.clone().into(), mount.guest.clone()));
        let shown = self.allow_read.iter().chain(&self.allow_write).filter(|path| path.is_dir());
        let shown = shown.filter_map(|path| Some((path.clone(), sandbox_path(path).ok()?)));
        let host = host.canonicalize().ok()?;
        let mut nearest: Option<(usize, String)> = None;
        for (mounted, guest) in here.into_iter().chain(mounts).chain(shown) {
            let Ok(mounted) = mounted.canonicalize() else { continue };
            let Ok(beneath) = host.strip_prefix(&mounted) else { continue };
            let Some(beneath) = beneath.to_str() else { continue };
            let depth = mounted.components().count();
            if nearest.as_ref().is_none_or(|(nearest, _)| depth > *nearest) {
                let path = if beneath.is_empty() { guest } else { format!("{guest}/{beneath}") };
                nearest = Some((depth, path));
            }
        }
        nearest.map(|(_, path)| path)
    }

    /// Fails if `--export` is given, which `who` cannot do.
    pub(crate) fn refuse_export(&self, who: &str) -> Result<()> {
        if let Some((mount, directory)) = self.export.first() {
            bail!("`--export {mount}={directory}` is not for {who}; mount it with `:rw` instead");
        }
        Ok(())
    }

    /// Returns the packages that sessions have or may load, as the user has named them.
    pub(crate) fn package_names(&self) -> Vec<String> {
        let asked = self.packages.iter().chain(&self.preload).chain(&self.allow_package).flatten();
        let mut names: Vec<String> = asked.cloned().collect();
        // If it cannot be used, the first session says so.
        let bundle = find_packages(self.bundle.as_deref()).ok().flatten();
        for name in bundle.iter().flat_map(Bundle::names) {
            if !names.iter().any(|other| other == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Returns the guest's reach outside of its session.
    pub(crate) fn reach(&self) -> Reach {
        let mut mounts = Vec::new();
        if self.here().is_some() {
            mounts.push(format!("{HERE} (changes are not kept)"));
        }
        for mount in &self.mount {
            let how = match mount.mode {
                MountMode::ReadWrite => "read and write",
                MountMode::Overlay => "changes are not kept",
                _ => "read only",
            };
            mounts.push(format!("{} ({how})", mount.guest));
        }
        for (paths, how) in [(&self.allow_read, "read only"), (&self.allow_write, "read and write")]
        {
            let paths = paths.iter().filter_map(|path| sandbox_path(path).ok());
            mounts.extend(paths.map(|path| format!("{path} ({how})")));
        }
        let mut servers = self.allow_net.clone();
        if self.allow_public_net {
            servers.push("every public server".to_owned());
        }
        let is_writable = |mount: &value_parsers::MountArg| mount.mode == MountMode::ReadWrite;
        Reach {
            writes: self.mount.iter().any(is_writable) || !self.allow_write.is_empty(),
            network: !servers.is_empty(),
            mounts,
            servers,
        }
    }

    /// Makes an engine that has the packages of `--preload`, or without that these of `--with`, if
    /// an image can hold them. Returns the packages that are to be loaded.
    pub(crate) fn engine(
        &self,
        builder: EngineBuilder,
        memory_bytes: u64,
        mut with: Vec<String>,
    ) -> Result<(Engine, Vec<String>)> {
        let builder = match find_packages(self.bundle.as_deref())? {
            Some(bundle) => {
                let images = if self.no_image { SetImages::Ignore } else { SetImages::Make };
                builder.bundle(bundle).set_images(images)
            }
            None => builder,
        };
        let named: Vec<String> = self.preload.iter().flatten().cloned().collect();
        if named.is_empty() {
            if self.may_start_imported(memory_bytes, &with) {
                let confined = builder.clone().confine_preloaded().replace_damaged_image();
                match self.preloaded(confined, &with) {
                    // No image can hold them: they are loaded, as they would be without images.
                    Err(error) if error.kind() == ErrorKind::Start => {}
                    Err(error) if error.kind() == ErrorKind::Limit => {
                        let reason = in_options(&error.to_string());
                        let packages = with.join(", ");
                        writeln!(
                            std::io::stderr(),
                            "note: {packages} is loaded without an image: {reason}; a longer time, \
                             once, makes one"
                        )?;
                    }
                    made => {
                        let engine = made?;
                        if engine.image_path().is_none() {
                            writeln!(std::io::stderr(), "{}", unstored(&with))?;
                        }
                        return Ok((engine, Vec::new()));
                    }
                }
            }
            return Ok((builder.build()?, with));
        }
        match self.preloaded(builder.clone(), &named) {
            Err(error) if matches!(error.kind(), ErrorKind::Start | ErrorKind::Limit) => {
                let packages = named.join(", ");
                let reason = in_options(&error.to_string());
                let reason = terminal::for_stderr(&reason).into_owned();
                writeln!(
                    std::io::stderr(),
                    "warning: {packages} cannot be preloaded and is loaded instead: {reason}"
                )?;
                // A dotted name is that of a module, which the program imports itself.
                with.extend(named.into_iter().filter(|name| !name.contains('.')));
                Ok((builder.build()?, with))
            }
            made => Ok((made?, with)),
        }
    }

    /// Returns `true` if it makes no difference for these packages whether an image has imported
    /// them: nothing that they could read then is set, the log of accesses does not miss them, and
    /// there is room for all that they import.
    fn may_start_imported(&self, memory_bytes: u64, packages: &[String]) -> bool {
        !packages.is_empty()
            && !self.no_image
            && self.env.is_empty()
            && self.allow_env.is_empty()
            && self.secrets.is_empty()
            && self.audit.is_none()
            && memory_bytes >= IMAGE_MEMORY_BYTES
    }

    fn preloaded(
        &self,
        builder: EngineBuilder,
        packages: &[String],
    ) -> Result<Engine, isolet::Error> {
        let mut builder = builder.packages_from(&self.sources()?);
        for package in packages {
            builder = builder.preload(package)?;
        }
        builder.build()
    }

    /// Applies these permissions to a sandbox.
    ///
    /// `variables` are also set for the guest, unless the user has set them.
    pub(crate) fn grant(
        &self,
        builder: SandboxBuilder,
        variables: Vec<(&'static str, String)>,
    ) -> Result<SandboxBuilder> {
        let mut permissions = self.permissions()?;
        if let Some(log) = &self.audit {
            permissions.check_out_of_reach("the log of `--audit`", log)?;
        }
        for file in &self.ca_file {
            permissions.check_out_of_reach("the authorities of `--ca-file`", file)?;
        }
        for (name, value) in variables {
            let named = self.env.iter().map(|(name, _)| name).chain(&self.allow_env);
            let mut named = named.chain(self.secrets.names());
            if !named.any(|other| other == name) {
                permissions = permissions.env(name, value);
            }
        }
        for name in &self.allow_env {
            #[expect(clippy::disallowed_methods, reason = "the user named this one variable")]
            if std::env::var_os(name).is_none() {
                let name = on_one_line(name);
                writeln!(
                    std::io::stderr(),
                    "warning: there is no variable `{name}` in this environment for `--allow-env`"
                )?;
            }
        }
        let builder = builder.permissions(permissions);
        if let Some(journal) = self.journal.clone() {
            let gate = Arc::clone(&journal);
            let sink = move |event: &AuditEvent| {
                journal.append(&line(event));
            };
            return Ok(builder.on_audit(sink).audit_gate(move |_| audit::check(&gate)));
        }
        let refusals = self.refusals.clone();
        let builder = builder.on_refusal(move |event| refusals.note(event));
        Ok(match self.audit_log()? {
            Some(log) => builder.on_audit(move |event| log.write(&line(event))),
            None => builder,
        })
    }

    /// Fails if guests could change a file or directory of the command's options, which are named
    /// with it.
    pub(crate) fn check_out_of_reach(&self, own: &[(&str, Option<&Path>)]) -> Result<()> {
        let given: Vec<_> =
            own.iter().filter_map(|(what, path)| path.map(|path| (what, path))).collect();
        if given.is_empty() {
            return Ok(());
        }
        let permissions = self.permissions()?;
        for (what, path) in given {
            permissions.check_out_of_reach(what, path)?;
        }
        Ok(())
    }

    /// Returns the path of `--audit`.
    pub(crate) fn audit_path(&self) -> Option<&Path> {
        self.audit.as_deref()
    }

    /// Opens the log of `--audit`, if it is wanted, for a server: accesses that cannot be logged
    /// are denied.
    pub(crate) fn open_journal(&mut self) -> Result<Option<Arc<Journal>>> {
        let meanwhile = "no access and no call of a server's tool is allowed until it can be";
        let open = |path: &Path| Journal::open(path, meanwhile).map(Arc::new);
        self.journal = self.audit.as_deref().map(open).transpose()?;
        Ok(self.journal.clone())
    }

    /// Opens the log of `--audit`, if it is wanted.
    fn audit_log(&self) -> Result<Option<audit::Log>> {
        self.audit.as_deref().map(audit::Log::open).transpose()
    }

    /// Returns the packages to load for this script.
    pub(crate) fn packages(&self, script: &str) -> Result<Vec<String>> {
        let mut packages: Vec<String> = self.packages.iter().flatten().cloned().collect();
        let asked = isolet::script_packages(script)?;
        if self.script_packages {
            packages.extend(asked);
        } else if packages.is_empty() && self.allow_package.is_empty() && !asked.is_empty() {
            let asked = asked.join("`, `");
            bail!(
                "the script asks for packages (`{asked}`) that nobody has allowed; \
                 `--script-packages` allows what it asks for, `--with` names them"
            );
        }
        Ok(packages)
    }

    /// Returns `true` if a file that the guest writes at this path is one of the host.
    pub(crate) fn is_written_on_host(&self, path: &str) -> bool {
        let is_beneath = |guest: &str| {
            let rest = path.strip_prefix(guest.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut mounts = self.mount.iter().filter(|mount| mount.mode == MountMode::ReadWrite);
        mounts.any(|mount| is_beneath(&mount.guest))
            || self
                .allow_write
                .iter()
                .any(|path| sandbox_path(path).is_ok_and(|at| is_beneath(&at)))
    }

    /// Copies the files into a new session and loads its packages. Returns the files to write back.
    pub(crate) fn prepare(&self, session: &mut Session, packages: &[String]) -> Result<HostFiles> {
        let mut files = self.host_files(session)?;
        self.prepare_with(session, &mut files, packages)?;
        Ok(files)
    }

    /// Copies the files into a session that was saved, which has its packages and its working
    /// directory. Returns the files to write back.
    pub(crate) fn prepare_files(&self, session: &mut Session) -> Result<HostFiles> {
        let mut files = self.host_files(session)?;
        files.copy_in(session)?;
        Ok(files)
    }

    /// Returns the files to write back, which a session has already.
    pub(crate) fn host_files(&self, session: &mut Session) -> Result<HostFiles> {
        HostFiles::open(session, &self.allow_read, &self.allow_write, &self.export)
    }

    /// Does the same for a session that replaces another one, with the same files.
    pub(crate) fn prepare_with(
        &self,
        session: &mut Session,
        files: &mut HostFiles,
        packages: &[String],
    ) -> Result<()> {
        files.copy_in(session)?;
        if self.here().is_some() {
            session.run(Cell::new("").working_directory(HERE))?;
        }
        if !packages.is_empty() {
            session.load_packages(packages)?;
        }
        Ok(())
    }

    fn permissions(&self) -> Result<Permissions> {
        let mut permissions = self.sources()?;
        if let Some(directory) = self.here() {
            permissions = permissions.mount(HERE, Mount::overlay(directory)?)?;
        }
        for mount in &self.mount {
            permissions = permissions.mount(&mount.guest, mount.open()?)?;
        }
        for path in self.allow_write.iter().filter(|path| path.is_dir()) {
            permissions = permissions.mount(&sandbox_path(path)?, Mount::read_write(path)?)?;
        }
        for path in self.allow_read.iter().filter(|path| path.is_dir()) {
            if !self.allow_write.contains(path) {
                permissions = permissions.mount(&sandbox_path(path)?, Mount::read_only(path)?)?;
            }
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
        for (name, _) in &self.resolve {
            let addresses = self.resolve.iter().filter(|(other, _)| other == name);
            permissions = permissions.resolve(name, addresses.map(|(_, address)| *address))?;
        }
        for (name, value) in &self.env {
            permissions = permissions.env(name, value);
        }
        for name in &self.allow_env {
            permissions = permissions.allow_env(name)?;
        }
        permissions = self.secrets.grant(permissions)?;
        for package in self.packages.iter().chain(&self.allow_package).flatten() {
            permissions = permissions.allow_package(package)?;
        }
        Ok(permissions)
    }

    fn sources(&self) -> Result<Permissions, isolet::Error> {
        let Self { wheels, pyodide_packages, offline, ca_file, .. } = self;
        sources(wheels, pyodide_packages.as_deref(), *offline, ca_file)
    }
}

/// Returns permissions of nothing, with the sources of packages.
pub(crate) fn sources(
    wheels: &[PathBuf],
    pyodide_packages: Option<&str>,
    offline: bool,
    ca_file: &[PathBuf],
) -> Result<Permissions, isolet::Error> {
    let mut permissions = Permissions::none().on_package_download(progress::tell);
    for directory in wheels {
        permissions = permissions.wheels(directory);
    }
    if let Some(source) = pyodide_packages {
        permissions = permissions.pyodide_packages(source);
    }
    if offline {
        permissions = permissions.offline_packages();
    }
    for file in ca_file {
        permissions = permissions.ca_file(file)?;
    }
    Ok(permissions)
}

/// Returns the warning that the image of these packages is made at each start.
fn unstored(packages: &[String]) -> String {
    format!(
        "warning: the image of {} cannot be stored in the user's cache directory, so that each \
         start makes it anew; `--no-image` loads the packages instead",
        packages.join(", ")
    )
}

/// Returns the guest path of a host directory, from its name.
fn sandbox_path(path: &Path) -> Result<String> {
    let whole = path.canonicalize().with_context(|| format!("cannot open `{}`", path.display()))?;
    let name = whole.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("`{}` has no name to show", path.display()))?;
    Ok(format!("{SANDBOX}/{name}"))
}
