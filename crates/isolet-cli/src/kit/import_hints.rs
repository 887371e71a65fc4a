//! Hints for a run that fails because something was not given to it: a directory, an option, a
//! package, a server.

use std::path::PathBuf;

use isolet::{Execution, Outcome};
use isolet_service::core::hint_in_options;

use crate::kit::refusals::Refusals;

/// The likely cause of a failed import or request: a directory from which python would import and
/// that the guest does not see, an option that is among the program's arguments, or a rule.
#[derive(Default)]
pub(crate) struct ImportHints {
    pub(crate) directory: Option<PathBuf>,
    /// The option.
    pub(crate) misplaced: Option<String>,
    /// The name given with `-m`.
    pub(crate) module: Option<String>,
    pub(crate) refusals: Refusals,
}

impl ImportHints {
    /// Returns a hint if the run failed because of that.
    pub(crate) fn hint(&self, execution: &Execution) -> Option<String> {
        self.missing_module(execution)
            .or_else(|| self.misplaced_option(execution))
            .or_else(|| hint_in_options(execution))
            .or_else(|| self.refusals.hint(execution))
    }

    /// Returns a hint if the run failed for want of something that options give.
    fn misplaced_option(&self, execution: &Execution) -> Option<String> {
        const OF_OPTIONS: [&str; 3] =
            ["ModuleNotFoundError", "FileNotFoundError", "PermissionError"];
        let option = self.misplaced.as_deref()?;
        let exception = execution.exception()?;
        OF_OPTIONS.contains(&exception.type_name.as_str()).then(|| {
            format!(
                "`{option}` comes after the program, so that it is one of the program's \
                 arguments; isolet's options come before it"
            )
        })
    }

    /// Returns a hint if a module in that directory is missing.
    fn missing_module(&self, execution: &Execution) -> Option<String> {
        let directory = self.directory.as_deref()?;
        let name = match execution.outcome() {
            Outcome::Exited(1) => plain_name(self.module.as_deref()?),
            _ => unknown_module(execution),
        }?;
        let script = format!("{name}.py");
        let found = if directory.join(&script).is_file() {
            script
        } else if directory.join(name).is_dir() {
            format!("{name}/")
        } else {
            return None;
        };
        let directory = directory.display();
        Some(format!("`{found}` is in `{directory}`, which `--here` shows to the guest"))
    }
}

/// Returns the module that a run has not found.
fn unknown_module(execution: &Execution) -> Option<&str> {
    let Outcome::Raised(exception) = execution.outcome() else { return None };
    if exception.type_name != "ModuleNotFoundError" {
        return None;
    }
    let name = exception.message.strip_prefix("No module named '")?;
    plain_name(name.split('\'').next()?)
}

/// Returns the package of a module. It is the guest's text, which is looked up and shown only if it
/// is a plain name.
fn plain_name(module: &str) -> Option<&str> {
    let name = module.split('.').next()?;
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_plain.then_some(name)
}
