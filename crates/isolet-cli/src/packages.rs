//! `isolet packages`: fetches packages into a directory, for machines without a network.

use crate::args::isolation::IsolationArgs;
use crate::kit::engine::{find_packages, open_engine};
use crate::show::print::print;
use isolet_support::size::shown_bytes;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use isolet::{Engine, LoadedPackage, Permissions, Sandbox, SetImages};
use serde_json::json;

use crate::args::permissions;
use crate::args::value_parsers;
use crate::show::progress::{self, Progress};
use isolet_support::json as lines;

#[derive(clap::Subcommand)]
pub(crate) enum PackagesCommand {
    /// Write the wheels of packages, with all that they need, into a directory
    ///
    /// On a machine without a network, `isolet run --wheels DIR --offline --with NAME` then runs
    /// with them.
    Fetch(FetchArgs),
    /// Write packages, with all that they need and their bytecode, into a directory as a bundle
    ///
    /// `--bundle DIR`, or the variable `ISOLET_BUNDLE`, then lets code import them without further
    /// options.
    Bundle(BundleArgs),
    /// Make the images that sessions start from which import packages of the bundle
    ///
    /// Without this, the first session that imports such packages takes seconds for it, and their
    /// image is made in the background meanwhile.
    Prepare(PrepareArgs),
}

impl PackagesCommand {
    /// Returns `true` if the command prints JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Fetch(args) => args.json,
            Self::Bundle(args) => args.fetch.json,
            Self::Prepare(args) => args.json,
        }
    }
}

#[derive(clap::Args)]
pub(crate) struct PrepareArgs {
    /// Directory of the bundle [default: `$ISOLET_BUNDLE`, or isolet-science where it is installed]
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Print one JSON object: the images, or why there are none
    #[arg(long)]
    json: bool,
    /// Do not show the progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    isolation: IsolationArgs,
}

#[derive(clap::Args)]
pub(crate) struct BundleArgs {
    #[command(flatten)]
    fetch: FetchArgs,
    /// Packages of it that are often imported together: sessions that import them start from an
    /// image. May be given several times, the smallest set first
    #[arg(long, value_name = "PACKAGES", value_parser = value_parsers::packages)]
    set: Vec<value_parsers::Packages>,
}

#[derive(clap::Args)]
pub(crate) struct FetchArgs {
    /// Packages, such as pydantic, 'rich>=14' or numpy,pandas
    #[arg(required = true, value_name = "PACKAGES", value_parser = value_parsers::packages)]
    packages: Vec<value_parsers::Packages>,
    /// Directory for the wheels, which is made if it does not exist
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Look for wheels in a directory first
    #[arg(long, value_name = "DIR")]
    wheels: Vec<PathBuf>,
    /// Take Pyodide's packages from a directory, or from a URL that contains {file}
    #[arg(long, value_name = "SOURCE")]
    pyodide_packages: Option<String>,
    /// Take packages only from the cache and from directories of wheels
    #[arg(long)]
    offline: bool,
    /// Trust the certificate authorities in a PEM file, too
    #[arg(long, value_name = "FILE")]
    ca_file: Vec<PathBuf>,
    /// Print one JSON object: what was written, or why nothing was
    #[arg(long)]
    json: bool,
    /// Do not show the progress
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn packages(command: &PackagesCommand, assets: Option<&Path>) -> Result<ExitCode> {
    let (args, sets) = match command {
        PackagesCommand::Prepare(args) => return prepare(args, assets),
        PackagesCommand::Fetch(args) => (args, None),
        PackagesCommand::Bundle(args) => (&args.fetch, Some(&args.set)),
    };
    let engine = open_engine(assets, &args.ca_file, |assets| {
        Ok(Engine::builder().assets(assets).on_notice(progress::notice).build()?)
    })?;
    let sandbox = Sandbox::builder(&engine).permissions(args.permissions()?).build()?;
    let packages: Vec<String> = args.packages.iter().flatten().cloned().collect();
    let progress = Progress::new(args.quiet || args.json);
    let fetched = progress.during(&progress::of_packages(&packages), || {
        let sandbox = sandbox.blocking();
        match sets {
            None => sandbox.fetch_packages(&packages, &args.to),
            Some(sets) => {
                let sets = sets.iter().map(|set| set.iter().cloned().collect());
                sandbox.bundle_packages(&packages, sets, &args.to)
            }
        }
    })?;
    let fetched = fetched.into_iter().map(|package| {
        let path = args.to.join(&package.file_name);
        let size = path.metadata().with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok((package, size.len()))
    });
    let fetched = fetched.collect::<Result<Vec<_>>>()?;
    if args.json {
        lines::print(&object(&args.to, &fetched))?;
        return Ok(ExitCode::SUCCESS);
    }
    let printed = print(&table(&fetched))?;
    let (count, total) = (fetched.len(), fetched.iter().map(|(_, bytes)| bytes).sum());
    let size = shown_bytes(total);
    writeln!(io::stderr(), "wrote {count} wheels ({size}) to `{}`", args.to.display())?;
    Ok(printed)
}

/// Makes the images of the bundle's sets that are missing.
fn prepare(args: &PrepareArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let Some(bundle) = find_packages(args.bundle.as_deref())? else {
        bail!(
            "no packages are installed: `isolet-science` has some (docs/guides/install.md), and \
             `--bundle` names a directory of others"
        );
    };
    let mut made = Vec::new();
    let count = bundle.sets().count();
    for (set, number) in bundle.sets().zip(1..) {
        let names = set.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let what = format!("making the image of {names} ({number} of {count})");
        let start = Instant::now();
        let progress = Progress::new(args.quiet || args.json);
        let engine = open_engine(assets, &[], |assets| {
            let builder = args.isolation.confine(Engine::builder().assets(assets));
            let mut builder = builder.bundle(bundle.clone()).set_images(SetImages::Ignore);
            for name in set {
                builder = builder.preload(name)?;
            }
            progress.during(&what, || Ok(builder.clone().on_notice(progress::notice).build()?))
        })?;
        let path = engine.image_path().with_context(|| format!("the image of {names} is not kept"));
        let bytes =
            path?.metadata().with_context(|| format!("the image of {names} is gone"))?.len();
        let seconds = start.elapsed().as_secs_f64();
        if !args.json && !args.quiet {
            writeln!(io::stderr(), "{names}: {} in {seconds:.1} s", shown_bytes(bytes))?;
        }
        made.push(json!({"packages": set, "bytes": bytes, "seconds": seconds}));
    }
    if args.json {
        lines::print(&json!({"directory": bundle.directory().to_string_lossy(), "images": made}))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl FetchArgs {
    fn permissions(&self) -> Result<Permissions> {
        let Self { wheels, pyodide_packages, offline, ca_file, .. } = self;
        Ok(permissions::sources(wheels, pyodide_packages.as_deref(), *offline, ca_file)?)
    }
}

fn table(fetched: &[(LoadedPackage, u64)]) -> String {
    let mut text = String::new();
    let width = fetched.iter().map(|(package, _)| package.name.len()).max().unwrap_or_default();
    for (LoadedPackage { name, version, .. }, bytes) in fetched {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{name:<width$}  {version:<12}  {}", shown_bytes(*bytes));
    }
    text
}

fn object(directory: &Path, fetched: &[(LoadedPackage, u64)]) -> serde_json::Value {
    let shown = fetched.iter().map(|(package, bytes)| {
        json!({
            "name": package.name,
            "version": package.version,
            "file_name": package.file_name,
            "sha256": package.sha256,
            "bytes": bytes,
        })
    });
    json!({
        "directory": directory.to_string_lossy(),
        "bytes": fetched.iter().map(|(_, bytes)| bytes).sum::<u64>(),
        "packages": shown.collect::<Vec<_>>(),
    })
}
