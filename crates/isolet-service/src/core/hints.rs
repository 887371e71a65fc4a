//! What helps with a run whose import failed, in the words of who reads it.

use isolet::{Execution, MissingModule};

/// Where it says of each package whether it works.
const PAGE: &str = "docs/concepts/packages.md";

/// Returns what helps a user of the command, if something does.
pub fn hint_in_options(execution: &Execution) -> Option<String> {
    Some(match execution.missing_module()? {
        MissingModule::Package { module, package } if module == package => {
            format!("`--with {module}` loads it, if its package has that name")
        }
        MissingModule::Package { module, package } => {
            format!("`--with {package}` loads it: that is the package of `{module}`")
        }
        MissingModule::NoWheel { package } => no_wheel(&package),
        MissingModule::Installer { module } => {
            format!("`{module}` does not work in a sandbox: `--with NAME` loads a package")
        }
        _ => return None,
    })
}

/// Returns what helps a client, if something does.
pub(crate) fn hint_in_fields(execution: &Execution) -> Option<String> {
    Some(match execution.missing_module()? {
        MissingModule::Package { module, package } if module == package => {
            format!("`packages=[\"{module}\"]` loads it, if its package has that name")
        }
        MissingModule::Package { module, package } => {
            format!("`packages=[\"{package}\"]` loads it: that is the package of `{module}`")
        }
        MissingModule::NoWheel { package } => no_wheel(&package),
        MissingModule::Installer { module } => {
            format!("`{module}` does not work in a sandbox: `packages=[\"NAME\"]` loads a package")
        }
        _ => return None,
    })
}

/// Returns what helps a model that calls a tool of `isolet mcp`, if something does.
pub fn hint_for_models(execution: &Execution) -> Option<String> {
    Some(match execution.missing_module()? {
        MissingModule::Package { module, package } => format!(
            "`{module}` is not installed, and code cannot install it: do without, or ask the user \
             to start `isolet mcp` with `--with {package}`."
        ),
        MissingModule::NoWheel { package } => format!("{}; do without.", no_wheel(&package)),
        MissingModule::Installer { .. } => "Code cannot install packages here: do without, or ask \
                                            the user to start `isolet mcp` with `--with NAME`."
            .to_owned(),
        _ => return None,
    })
}

fn no_wheel(package: &str) -> String {
    format!("`{package}` has no wheel for WebAssembly, so that it cannot be loaded ({PAGE})")
}
