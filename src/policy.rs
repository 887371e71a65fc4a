//! What the sessions of a sandbox are made with. It never changes once the sandbox is built.

use std::fmt;
use std::sync::Arc;

use crate::engine::ready::InterpreterKind;
use crate::frame;
use crate::host::audit::AuditSink;
use crate::host::tools::Tool;
use crate::isolation::Confinement;
use crate::limits::Limits;
use crate::packages::LazyStore;
use crate::permissions::Permissions;
use crate::terminal::Terminal;
use crate::tool::ToolSpec;

/// The checked policy of one sandbox.
pub(crate) struct Policy {
    pub(crate) limits: Limits,
    pub(crate) permissions: Permissions,
    /// Which packages sessions may have, and where they come from.
    pub(crate) packages: Arc<LazyStore>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) audit: Option<AuditSink>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) submit: Option<Arc<ToolSpec>>,
    pub(crate) confinement: Confinement,
}

impl Policy {
    /// Returns what an interpreter for these sessions is started with.
    pub(crate) fn kind(&self) -> InterpreterKind {
        InterpreterKind {
            confinement: self.confinement.clone(),
            memory_bytes: self.limits.memory_bytes(),
            max_report_bytes: frame::max_report_bytes(self.limits.value_bytes()),
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
