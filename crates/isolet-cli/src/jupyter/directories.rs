//! Where Jupyter looks for kernelspecs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

/// The variables that name an environment of Python that is active.
const ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];
/// The variable that names Jupyter's directory, and the one for those of other programs.
const JUPYTER: &str = "JUPYTER_DATA_DIR";
const DATA_HOME: &str = "XDG_DATA_HOME";

/// Which kernelspec is meant.
#[derive(clap::Args)]
pub(super) struct Place {
    /// The kernel's name for programs: `papermill -k NAME`
    #[arg(long, value_name = "NAME", default_value = "isolet", value_parser = name)]
    pub(super) name: String,
    /// In the user's directory, `$JUPYTER_DATA_DIR` or the usual one. This is the default
    #[arg(long, group = "place")]
    user: bool,
    /// In `DIR/share/jupyter`
    #[arg(long, value_name = "DIR", group = "place")]
    prefix: Option<PathBuf>,
    /// In the environment that is active, `$VIRTUAL_ENV` or `$CONDA_PREFIX`, or else in the one
    /// that isolet is installed in
    #[arg(long, group = "place")]
    sys_prefix: bool,
}

/// Accepts the names that Jupyter accepts.
fn name(name: &str) -> Result<String, String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_of_name) {
        return Err(format!(
            "`{name}` is no name of a kernel: letters, digits, `.`, `_` and `-` are"
        ));
    }
    Ok(name.to_owned())
}

impl Place {
    /// Returns the directory of the kernelspec.
    pub(super) fn directory(&self) -> Result<PathBuf> {
        let data = match &self.prefix {
            Some(prefix) => beneath(prefix),
            None if self.sys_prefix => {
                let active = ENVIRONMENTS.iter().find_map(|name| variable(name));
                match active.or_else(own_environment) {
                    Some(active) => beneath(&active),
                    None => bail!(
                        "no environment is active: neither `$VIRTUAL_ENV` nor `$CONDA_PREFIX` is \
                         set, and isolet is installed in none; `--prefix DIR` names one"
                    ),
                }
            }
            None => of_user(etcetera::home_dir().ok(), variable)?,
        };
        let directory = std::path::absolute(data.join("kernels").join(&self.name));
        directory.context("the current directory is gone, and the path is beneath it")
    }
}

/// Returns the virtual environment among whose scripts this program is.
fn own_environment() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let environment = program.parent()?.parent()?;
    environment.join("pyvenv.cfg").is_file().then(|| environment.to_owned())
}

fn beneath(prefix: &Path) -> PathBuf {
    prefix.join("share/jupyter")
}

fn variable(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "Jupyter's own variables, of the user")]
    let value = std::env::var_os(name)?;
    (!value.is_empty()).then(|| value.into())
}

/// Returns Jupyter's directory of a user, by the rules of `jupyter --data-dir`.
fn of_user(home: Option<PathBuf>, variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf> {
    if let Some(named) = variable(JUPYTER) {
        return Ok(named);
    }
    let home = home.with_context(|| format!("there is no home directory; set `{JUPYTER}`"))?;
    if cfg!(target_os = "macos") {
        return Ok(home.join("Library/Jupyter"));
    }
    let data = variable(DATA_HOME).unwrap_or_else(|| home.join(".local/share"));
    ensure!(data.is_absolute(), "`{DATA_HOME}` is `{}`, which is not absolute", data.display());
    Ok(data.join("jupyter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_jupyter_takes() {
        for given in ["isolet", "Py-3.14_x"] {
            assert_eq!(name(given), Ok(given.to_owned()));
        }
        for given in ["", ".", "..", "a/b", "a b", "ä"] {
            assert!(name(given).is_err(), "{given}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_directory_is_jupyters() {
        let of = |set: &'static [(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into())
            };
            of_user(Some("/home/me".into()), variable)
        };
        let expected = |path: &str| PathBuf::from(path);
        assert_eq!(of(&[]).unwrap(), expected("/home/me/.local/share/jupyter"));
        assert_eq!(of(&[("XDG_DATA_HOME", "/data")]).unwrap(), expected("/data/jupyter"));
        let both = of(&[("JUPYTER_DATA_DIR", "/j"), ("XDG_DATA_HOME", "/data")]);
        assert_eq!(both.unwrap(), expected("/j"));
        assert!(of(&[("XDG_DATA_HOME", "data")]).is_err());
    }
}
