//! `isolet jupyter install` and `uninstall`: the kernelspec, a directory of Jupyter.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Command, FromArgMatches};

use super::KernelOptions;
use super::directories::Place;
use super::kernel::{ByOptions, KernelArgs};
use super::spec::{self, KernelSpec};
use crate::show::print::print;

const FILE: &str = "kernel.json";

/// The pictures that front ends show.
const LOGOS: [(&str, &[u8]); 3] = [
    ("logo-32x32.png", include_bytes!("logos/logo-32x32.png")),
    ("logo-64x64.png", include_bytes!("logos/logo-64x64.png")),
    ("logo-svg.svg", include_bytes!("logos/logo-svg.svg")),
];

#[derive(clap::Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    place: Place,
    /// The kernel's name for people, in menus
    #[arg(long, value_name = "TEXT", default_value = "Python (isolet)")]
    display_name: String,
    /// Take the place of a kernelspec of this name
    #[arg(long)]
    replace: bool,
    /// Options of `isolet jupyter kernel` that Jupyter starts it with, such as `-- --with numpy`:
    /// what cells may reach, besides nothing
    #[arg(last = true)]
    options: Vec<OsString>,
}

#[derive(clap::Args)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    place: Place,
}

/// Writes a kernelspec, if a kernel with these options can start. `command` is the definition of
/// isolet's command line.
pub(super) fn install(
    args: InstallArgs,
    assets: Option<&Path>,
    mut command: Command,
) -> Result<ExitCode> {
    let directory = args.place.directory()?;
    let shown = directory.display();
    if directory.symlink_metadata().is_ok() && !args.replace {
        bail!("`{shown}` is there already; `--replace` takes its place");
    }
    command.build();
    let (mut words, given) = kernel_of(args.options, &command)?;
    if let Some(assets) = assets {
        spec::add_assets(&mut words, assets)?;
    }
    // What is wrong with the options is said now, and not when a notebook is opened.
    let KernelOptions { trust_output, policy } = given.options;
    let access = policy.permissions.reach().in_words();
    drop(ByOptions::new(policy, assets)?.session()?);
    let spec = KernelSpec::new(words, args.display_name);
    write(&directory, &spec).with_context(|| format!("cannot write `{shown}`"))?;
    let access = if access.is_empty() { "nothing of this machine".to_owned() } else { access };
    let trust = if trust_output { ", and their output runs in Jupyter's page" } else { "" };
    print(&format!("installed `{shown}`\ncells can reach: {access}{trust}\n"))
}

/// Returns the kernel that these options make: its words, and what they say.
fn kernel_of(options: Vec<OsString>, command: &Command) -> Result<(Vec<String>, KernelArgs)> {
    let file = format!("--connection-file={}", spec::CONNECTION_FILE).into();
    let line = ["isolet", "jupyter", "kernel"].map(OsString::from).into_iter().chain([file]);
    let shown = options.join(OsStr::new(" "));
    let matches = command.clone().try_get_matches_from(line.chain(options)).map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().next().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or("that asks for help");
        anyhow::anyhow!(
            "a kernel does not start with `{}` (after `--`): {reason}; `isolet jupyter kernel \
             --help` lists its options",
            shown.display()
        )
    })?;
    let matches = matches.subcommand_matches("jupyter").and_then(|found| found.subcommand());
    let (_, matches) = matches.context("the options after `--` are not understood")?;
    let jupyter = command.find_subcommand("jupyter");
    let definition = jupyter.and_then(|found| found.find_subcommand("kernel"));
    let definition = definition.context("there is no subcommand `kernel`")?;
    Ok((spec::words(matches, definition)?, KernelArgs::from_arg_matches(matches)?))
}

/// Writes the kernelspec as a whole, in the place of another one.
fn write(directory: &Path, spec: &KernelSpec) -> Result<()> {
    let parent = directory.parent().context("it is no directory of a kernel")?;
    fs::create_dir_all(parent)?;
    let made = tempfile::Builder::new().prefix(".isolet-").tempdir_in(parent)?;
    let mut json = serde_json::to_vec_pretty(spec)?;
    json.push(b'\n');
    fs::write(made.path().join(FILE), json)?;
    for (name, picture) in LOGOS {
        fs::write(made.path().join(name), picture)?;
    }
    open_to_others(made.path())?;
    if directory.symlink_metadata().is_ok() {
        remove(directory)?;
    }
    fs::rename(made.path(), directory)?;
    Ok(())
}

/// Gives a directory the mode that it would have if it were not a temporary one: with a prefix,
/// other users start the kernel too.
fn open_to_others(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let parent = directory.parent().unwrap_or(directory).metadata()?.permissions().mode();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700 | (parent & 0o055)))
}

fn remove(directory: &Path) -> std::io::Result<()> {
    if directory.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(directory)
    } else {
        fs::remove_file(directory)
    }
}

/// Removes a kernelspec of isolet.
pub(super) fn uninstall(args: &UninstallArgs) -> Result<ExitCode> {
    let directory = args.place.directory()?;
    let shown = directory.display();
    let text = fs::read(directory.join(FILE))
        .with_context(|| format!("there is no kernelspec `{shown}`"))?;
    let is_ours = serde_json::from_slice::<KernelSpec>(&text).is_ok_and(|spec| spec.is_ours());
    if !is_ours {
        bail!(
            "`{shown}` is not of `isolet jupyter install`; `jupyter kernelspec remove` removes any"
        );
    }
    remove(&directory).with_context(|| format!("cannot remove `{shown}`"))?;
    print(&format!("removed `{shown}`\n"))
}
