//! The words of a kernelspec: this program, and the options of `install` as they were given.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde::{Deserialize, Serialize};

/// The options whose values are paths, by their ids. Jupyter starts a kernel in the directory of
/// its notebook, so that they have to be absolute.
const PATHS: [&str; 8] = [
    "allow_read",
    "allow_write",
    "assets",
    "audit",
    "bundle",
    "ca_file",
    "pyodide_packages",
    "wheels",
];
/// The option whose values begin with a path.
const MOUNT: &str = "mount";
/// The option whose values may name files, and are no secrets themselves.
const SECRET: &str = "secret";
const REFERENCE: &str = "${";
const FILE: &str = "${file:";
/// The values of these options that are no paths.
const NO_BUNDLE: &str = "none";
const IN_URLS: &str = "{file}";

/// What Jupyter puts in the place of the connection file.
pub(super) const CONNECTION_FILE: &str = "{connection_file}";

/// A kernelspec's `kernel.json`.
#[derive(Deserialize, Serialize)]
pub(super) struct KernelSpec {
    pub(super) argv: Vec<String>,
    pub(super) display_name: String,
    language: String,
    interrupt_mode: String,
    #[serde(default)]
    metadata: BTreeMap<String, bool>,
}

impl KernelSpec {
    pub(super) fn new(argv: Vec<String>, display_name: String) -> Self {
        Self {
            argv,
            display_name,
            language: "python".to_owned(),
            interrupt_mode: "message".to_owned(),
            metadata: BTreeMap::from([("debugger".to_owned(), false)]),
        }
    }

    /// Returns `true` if a kernelspec is one of isolet's.
    pub(super) fn is_ours(&self) -> bool {
        matches!(&self.argv[..], [_, jupyter, kernel, ..]
            if jupyter == "jupyter" && kernel == "kernel")
    }
}

/// Returns the words of the kernel: the options that were given for it, with absolute paths.
/// `command` is the definition of the kernel.
pub(super) fn words(matches: &ArgMatches, command: &Command) -> Result<Vec<String>> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let mut words =
        vec![text(program.into_os_string())?, "jupyter".to_owned(), "kernel".to_owned()];
    for argument in command.get_arguments().filter(|argument| is_given(argument, matches)) {
        let id = argument.get_id().as_str();
        let Some(long) = argument.get_long() else { continue };
        if !argument.get_action().takes_values() {
            words.push(format!("--{long}"));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let value = absolute(id, value)?;
            // One word, so that a value may begin with a dash.
            words.push(format!("--{long}={value}"));
        }
    }
    Ok(words)
}

/// Adds the directory of the assets, which is an option of every subcommand.
pub(super) fn add_assets(words: &mut Vec<String>, assets: &Path) -> Result<()> {
    words.push(format!("--assets={}", absolute("assets", assets.as_os_str())?));
    Ok(())
}

/// Returns `true` for an option that the user has given, and not its default or a variable.
fn is_given(argument: &Arg, matches: &ArgMatches) -> bool {
    let id = argument.get_id().as_str();
    let source = matches.try_contains_id(id).ok().and_then(|_| matches.value_source(id));
    source == Some(ValueSource::CommandLine)
}

fn absolute(id: &str, value: &OsStr) -> Result<String> {
    let whole = |path: &str| -> Result<String> {
        let path = std::path::absolute(Path::new(path)).with_context(|| {
            format!("`{path}` cannot be made absolute, as the current directory is gone")
        })?;
        text(path.into_os_string())
    };
    let value = text(value.to_owned())?;
    match id {
        MOUNT => {
            let (host, rest) = value.split_once(':').unwrap_or((&value, ""));
            Ok(format!("{}:{rest}", whole(host)?))
        }
        SECRET if !value.contains(REFERENCE) => {
            let name = value.split_once('=').map_or("", |(name, _)| name);
            bail!(
                "the kernelspec, which others can read, would have the secret `{name}` in it; say \
                 where it is, by `${{env:VARIABLE}}`, `${{file:PATH}}` or `${{command:COMMAND}}`"
            )
        }
        SECRET => {
            let mut parts = value.split(FILE);
            let mut words = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let (path, rest) = part.split_once('}').unwrap_or((part, ""));
                let path = whole(path)?;
                words.extend([FILE, &path, "}", rest]);
            }
            Ok(words)
        }
        "bundle" if value == NO_BUNDLE => Ok(value),
        "pyodide_packages" if value.contains(IN_URLS) => Ok(value),
        id if PATHS.contains(&id) => whole(&value),
        _ => Ok(value),
    }
}

fn text(word: OsString) -> Result<String> {
    word.into_string().map_err(|word| {
        anyhow::anyhow!("`{}` is not UTF-8, as a kernelspec has to be", word.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jupyter::JupyterCommand;
    use clap::Subcommand;

    fn definition() -> Command {
        let assets = Arg::new("assets").long("assets").value_name("DIR").global(true);
        let jupyter = JupyterCommand::augment_subcommands(Command::new("jupyter"));
        let mut command = Command::new("isolet").arg(assets).subcommand(jupyter);
        command.build();
        command
    }

    fn kernel(command: &Command) -> &Command {
        command.find_subcommand("jupyter").unwrap().find_subcommand("kernel").unwrap()
    }

    fn of(options: &[&str]) -> Vec<String> {
        tried(options).unwrap()
    }

    fn tried(options: &[&str]) -> Result<Vec<String>> {
        let command = definition();
        let words = ["isolet", "jupyter", "kernel", "--connection-file={connection_file}"];
        let matches = command.clone().try_get_matches_from(words.iter().chain(options)).unwrap();
        let (_, jupyter) = matches.subcommand().unwrap();
        let (_, given) = jupyter.subcommand().unwrap();
        super::words(given, kernel(&command))
    }

    #[test]
    fn the_kernel_gets_the_options_that_are_given_and_no_defaults() {
        let words = of(&[]);
        assert_eq!(words[1..], ["jupyter", "kernel", "--connection-file={connection_file}"]);
        assert!(Path::new(&words[0]).is_absolute());
        let mut words = of(&[
            "--env=A=-b c",
            "--env",
            "B=",
            "--offline",
            "--timeout=5m",
            "--with=numpy,pandas",
            "--bundle=none",
            "-q",
        ]);
        words.sort();
        let mut expected = [
            "--bundle=none",
            "--connection-file={connection_file}",
            "--env=A=-b c",
            "--env=B=",
            "--offline",
            "--quiet",
            "--timeout=5m",
            "--with=numpy,pandas",
        ];
        expected.sort_unstable();
        assert_eq!(words[..8], expected, "{words:?}");
    }

    #[test]
    fn paths_are_those_of_the_directory_where_it_was_installed() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        let words = of(&["--mount", "./data:/data:rw", "--wheels=w", "--allow-read=a b"]);
        for expected in [
            format!("--mount={here}/data:/data:rw"),
            format!("--wheels={here}/w"),
            format!("--allow-read={here}/a b"),
        ] {
            assert!(words.contains(&expected), "{words:?}");
        }
        let url = "--pyodide-packages=https://a.example/{file}";
        assert!(of(&[url]).iter().any(|word| word == url));
    }

    #[test]
    fn a_secret_is_named_and_not_written_down() {
        let error = tried(&["--secret=KEY=canary@a.example"]).unwrap_err().to_string();
        assert!(error.contains("would have the secret `KEY` in it"), "{error}");
        assert!(!error.contains("canary"), "{error}");
        let word = "--secret=KEY=${env:KEY}@a.example";
        assert!(of(&[word]).iter().any(|given| given == word));
        let here = std::env::current_dir().unwrap();
        let expected = format!("--secret=KEY=${{file:{}/k}}@a.example", here.display());
        assert!(of(&["--secret=KEY=${file:k}@a.example"]).contains(&expected));
    }

    #[test]
    fn every_option_with_a_path_is_known_to_have_one() {
        let command = definition();
        for argument in kernel(&command).get_arguments() {
            let names = argument.get_value_names().unwrap_or_default();
            let is_path = names.iter().any(|name| {
                let name = name.to_string();
                ["DIR", "FILE", "HOST:", "PATH", "SOURCE"].iter().any(|word| name.contains(word))
            });
            let id = argument.get_id().as_str();
            // The last two are refused, and Jupyter's.
            let known = [&PATHS[..], &[MOUNT, "export", "connection_file"]].concat();
            assert_eq!(is_path, known.contains(&id), "{id}");
        }
    }

    #[test]
    fn other_kernelspecs_are_not_ours() {
        let spec = |argv: &[&str]| {
            KernelSpec::new(argv.iter().map(|word| (*word).to_owned()).collect(), String::new())
        };
        assert!(spec(&["/x/isolet", "jupyter", "kernel", "-f", "a"]).is_ours());
        assert!(!spec(&["python", "-m", "ipykernel_launcher"]).is_ours());
        assert!(!spec(&[]).is_ours());
    }
}
