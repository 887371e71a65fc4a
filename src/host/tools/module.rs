//! Modules of tools, which the guest imports. Their tools are asked for when a session uses them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::Tool;
use crate::data::error::{Error, ErrorKind};
use crate::data::tool::{ToolError, name, reserved};
use crate::protocol::{DefinedModule, DefinedModules};

/// The names of the module that finds the others: the second, if the first is the caller's.
const HELPERS: [&str; 2] = ["tools", "mcp_tools"];

/// What precedes the name of a module that is called like one of Python's own.
const PREFIX: &str = "mcp_";

pub(super) type Provider =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Vec<Tool>, ToolError>> + Send + Sync>;

type Version = Arc<dyn Fn() -> BoxFuture<'static, u64> + Send + Sync>;

/// Tools in a module of the guest, which asks for them when it uses the module.
///
/// In Python, the name is a variable and can be imported: `import github`, `from github import
/// search_issues` and `github.search_issues(...)` all work. A module costs nothing until it is
/// used, however many tools it has, and a function is made when it is first looked up.
///
/// ```
/// use isolet::{Param, Tool, ToolModule, ToolSpec};
///
/// let github = ToolModule::new("github", "Issues and repositories.", || async {
///     let spec = ToolSpec::new("search_issues").param(Param::new("query"));
///     Ok(vec![Tool::from_handler(spec, |arguments, _| async { Ok(arguments) })])
/// });
/// assert_eq!(github.name(), "github");
/// ```
///
/// [`ToolContext::tool_name`](crate::ToolContext::tool_name) is the whole name, such as
/// `github.search_issues`. Limits, timeouts and cancellation are those of other tools.
///
/// A module that is called like one of Python's standard library does not take its place. The guest
/// imports a module `time` as `mcp_time`, or by `from tools import time`.
#[derive(Clone)]
#[must_use]
pub struct ToolModule {
    name: String,
    doc: String,
    pub(super) provider: Provider,
    version: Option<Version>,
}

impl ToolModule {
    /// Makes a module from its name, its docstring, and a function that returns its tools.
    ///
    /// The function is called when a session first uses the module, and again after it has failed.
    /// Meanwhile the run's time stands still, as for a tool. Its error is raised in the guest. So
    /// is `ImportError`, if Python could not define one of the tools or two have the same name.
    pub fn new<F, Fut>(name: impl Into<String>, doc: impl Into<String>, provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Tool>, ToolError>> + Send + 'static,
    {
        let provider: Provider = Arc::new(move || Box::pin(provider()));
        Self { name: name.into(), doc: doc.into(), provider, version: None }
    }

    /// Sets a function that returns the version of the tools, for tools that others replace.
    ///
    /// It is called when a session looks for a function that it does not know, or lists or searches
    /// the module. If it then returns another number than when the tools were loaded, they are
    /// loaded again. Functions that the session has used stay what they are.
    ///
    /// Default: the tools of a session stay the same.
    pub fn version<F, Fut>(mut self, version: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = u64> + Send + 'static,
    {
        self.version = Some(Arc::new(move || Box::pin(version())));
        self
    }

    pub(super) async fn current_version(&self) -> u64 {
        match &self.version {
            Some(version) => version().await,
            None => 0,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name that the guest imports it by.
    pub(super) fn guest_name(&self) -> String {
        let prefix = if reserved::is_reserved(&self.name) { PREFIX } else { "" };
        format!("{prefix}{}", self.name)
    }
}

impl fmt::Debug for ToolModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolModule").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The modules of a sandbox, whose names differ from each other and from its functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModuleSet {
    pub(super) modules: Vec<ToolModule>,
    helper: &'static str,
}

impl ModuleSet {
    /// Checks the names. `functions` are the names of the guest's other functions.
    pub(crate) fn new(modules: Vec<ToolModule>, functions: &[&str]) -> Result<Self, Error> {
        if modules.is_empty() {
            return Ok(Self::default());
        }
        let refuse = |message: String| Err(Error::new(ErrorKind::Config, message));
        let mut names: HashMap<String, &str> = HashMap::new();
        for module in &modules {
            let (name, guest_name) = (&module.name, module.guest_name());
            if !name::is_identifier(name) {
                return refuse(format!(
                    "`{}` cannot be a module's name, it is no Python identifier",
                    name.escape_debug()
                ));
            }
            if functions.contains(&guest_name.as_str()) {
                return refuse(format!("there are a module and a tool of the name `{guest_name}`"));
            }
            if names.insert(guest_name.clone(), name).is_some() {
                return refuse(format!("there are two modules of the name `{guest_name}`"));
            }
        }
        let is_taken = |name: &str| functions.contains(&name) || names.contains_key(name);
        let Some(helper) = HELPERS.into_iter().find(|name| !is_taken(name)) else {
            let [first, second] = HELPERS;
            return refuse(format!(
                "tools or modules have both names `{first}` and `{second}`, one of them is for \
                 the module that finds the others"
            ));
        };
        Ok(Self { modules, helper })
    }

    /// Returns what the guest needs to know at its start.
    pub(crate) fn defined(&self) -> Option<DefinedModules> {
        let defined = |module: &ToolModule| DefinedModule {
            name: module.name.clone(),
            guest_name: module.guest_name(),
            doc: module.doc.clone(),
        };
        (!self.modules.is_empty()).then(|| DefinedModules {
            helper: self.helper.to_owned(),
            modules: self.modules.iter().map(defined).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str], functions: &[&str]) -> Result<ModuleSet, String> {
        let module = |name: &&str| ToolModule::new(*name, "", || async { Ok(Vec::new()) });
        let modules = names.iter().map(module).collect();
        ModuleSet::new(modules, functions).map_err(|error| error.to_string())
    }

    #[test]
    fn names_that_the_guest_could_confuse_are_refused() {
        let cases: [(&[&str], &[&str], &str); 6] = [
            (&["a-b"], &[], "`a-b` cannot be a module's name, it is no Python identifier"),
            (&["a", "a"], &[], "there are two modules of the name `a`"),
            (&["time", "mcp_time"], &[], "there are two modules of the name `mcp_time`"),
            (&["a"], &["a"], "there are a module and a tool of the name `a`"),
            (&["time"], &["mcp_time"], "there are a module and a tool of the name `mcp_time`"),
            (
                &["mcp_tools"],
                &["tools"],
                "tools or modules have both names `tools` and `mcp_tools`, one of them is for the \
                 module that finds the others",
            ),
        ];
        for (modules, functions, message) in cases {
            let refused = set(modules, functions).unwrap_err();
            assert!(refused.contains(message), "{refused}");
        }
    }

    #[test]
    fn modules_of_python_keep_their_names() {
        let defined = set(&["time", "github", "tools"], &["time"]).unwrap().defined().unwrap();
        let names: Vec<_> = defined.modules.iter().map(|one| one.guest_name.as_str()).collect();
        assert_eq!((names, &*defined.helper), (vec!["mcp_time", "github", "tools"], "mcp_tools"));
        assert!(set(&[], &["tools", "mcp_tools"]).unwrap().defined().is_none());
    }
}
