//! The policy of a sandbox's sessions. It never changes once the sandbox is built.

use std::fmt;
use std::sync::Arc;

use crate::api::engine::ready::InterpreterKind;
use crate::api::permissions::Permissions;
use crate::data::determinism::Determinism;
use crate::data::isolation::Confinement;
use crate::data::limits::Limits;
use crate::data::terminal::Terminal;
use crate::data::tool::ToolSpec;
use crate::host::audit::Auditor;
use crate::host::tools::{ModuleSet, Tool};
use crate::packages::LazyStore;
use crate::protocol::codec;

/// The validated policy of one sandbox.
pub(crate) struct Policy {
    /// On whose behalf the sessions run.
    pub(crate) tenant: Arc<str>,
    pub(crate) limits: Limits,
    pub(crate) permissions: Permissions,
    /// The packages that sessions may import, and their sources.
    pub(crate) packages: Arc<LazyStore>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) audit: Auditor,
    pub(crate) tools: Vec<Tool>,
    pub(crate) modules: ModuleSet,
    /// The functions that submit.
    pub(crate) submit: Vec<Arc<ToolSpec>>,
    pub(crate) confinement: Confinement,
    /// How many copies of a session there may be at once, if it can be forked.
    pub(crate) max_copies: Option<usize>,
    /// Whether a session goes on when a run has ended its interpreter.
    pub(crate) has_checkpoints: bool,
    /// What deterministic sessions depend on.
    pub(crate) determinism: Option<Determinism>,
}

impl Policy {
    /// Returns the policy of a session that reaches nothing of the host.
    pub(crate) fn without_access(&self) -> Self {
        Self {
            tenant: Arc::clone(&self.tenant),
            limits: self.limits.clone(),
            permissions: Permissions::none(),
            packages: Arc::clone(&self.packages),
            env: Vec::new(),
            terminal: None,
            audit: Auditor::default(),
            tools: Vec::new(),
            modules: ModuleSet::default(),
            submit: Vec::new(),
            confinement: self.confinement.clone(),
            max_copies: None,
            has_checkpoints: false,
            determinism: None,
        }
    }

    /// Returns the kind of interpreter that these sessions need.
    pub(crate) fn kind(&self) -> InterpreterKind {
        InterpreterKind {
            confinement: self.confinement.clone(),
            memory_bytes: self.limits.memory_bytes(),
            max_report_bytes: codec::max_report_bytes(self.limits.value_bytes()),
            max_copies: self.max_copies,
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("limits", &self.limits)
            .field("permissions", &self.permissions)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
