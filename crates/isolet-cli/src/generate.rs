//! `isolet completions` and `isolet man`: generated from the command's own definition.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::show::print::print;

const NAME: &str = "isolet";

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Print the page of this subcommand, such as run [default: the page of isolet itself]
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
    /// Write the pages of isolet and all its subcommands to this directory, which is created
    #[arg(long, value_name = "DIR", conflicts_with = "path")]
    dir: Option<PathBuf>,
}

/// Prints a shell script that completes isolet's command lines.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, NAME, &mut script);
    print(&String::from_utf8(script).context("the script is not UTF-8")?)
}

/// Prints a page of the manual, or writes all pages. A terminal gets the text of the page.
pub(crate) fn man(args: &ManArgs, mut command: Command) -> Result<ExitCode> {
    command.build();
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        write_pages(&command, dir)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = &command;
    for name in &args.path {
        let Some(found) = page.find_subcommand(name) else {
            bail!("`{}` has no subcommand `{name}`", page.get_bin_name().unwrap_or(NAME));
        };
        page = found;
    }
    if io::stdout().is_terminal() {
        // Nobody reads the source of a page.
        let name = [&["man".to_owned()], &*args.path].concat().join(" ");
        let note = format!("\nnote: `{NAME} {name} | man -l -` shows this as a manual page\n");
        return print(&(page.clone().render_long_help().to_string() + &note));
    }
    print(&String::from_utf8(render(page)?).context("the page is not UTF-8")?)
}

/// Writes the page of a command as `isolet-run.1`, and the pages of its subcommands.
fn write_pages(command: &Command, dir: &Path) -> Result<()> {
    let path = dir.join(format!("{}.1", page_name(command)));
    std::fs::write(&path, render(command)?)
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    shown.filter(|sub| sub.get_name() != "help").try_for_each(|sub| write_pages(sub, dir))
}

fn render(command: &Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone().version(env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .context("the page cannot be made")?;
    Ok(page)
}

fn page_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(NAME).replace(' ', "-")
}
