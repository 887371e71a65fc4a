//! Binds and reads variables in the guest's namespace, and defines tools there.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::Variable;
use crate::data::tool::ToolSpec;
use crate::data::value::Value;
use crate::host::SessionHost;
use crate::host::tools::Tool;
use crate::protocol::{Command, DefinedModules, Definitions, Report, Status};

/// The minimum time allowed for defining tools in the guest.
const DEFINE_TIME: Duration = Duration::from_secs(10);

/// The time limit for completing a name.
const COMPLETE_TIME: Duration = Duration::from_secs(1);

/// The maximum number of names that a completion returns.
const COMPLETED_NAMES: usize = 1000;

impl Shared {
    pub(super) async fn set(self: &Arc<Self>, items: Vec<(String, Value)>) -> Result<(), Error> {
        let frame = self.encode(Command::Set(items)).await?;
        let report = self.quick_frame(frame, self.limits.run_time()).await?;
        completed(&report, "the guest could not take the variables")
    }

    pub(super) async fn get_variable(
        self: &Arc<Self>,
        variable: &str,
    ) -> Result<Option<Value>, Error> {
        let max_value_bytes = self.limits.value_bytes();
        let command = || Command::Get { name: variable.to_owned(), max_value_bytes };
        let report = self.look(command).await?;
        completed(&report, "the guest could not give the variable")?;
        match (report.value, report.value_error) {
            (_, Some(reason)) => Err(unusable(reason)),
            (value, None) => Ok(value.filter(|_| report.flag)),
        }
    }

    pub(super) async fn list_variables(self: &Arc<Self>) -> Result<Vec<Variable>, Error> {
        let report = self.look(|| Command::Variables).await?;
        completed(&report, "the guest could not list its variables")?;
        Ok(report.locals)
    }

    pub(super) async fn complete(self: &Arc<Self>, text: String) -> Result<Vec<String>, Error> {
        self.check_source(&text)?;
        let time = self.limits.run_time().min(COMPLETE_TIME);
        let report = self.quick_within(Command::Complete(text), time).await?;
        completed(&report, "the guest could not complete the name")?;
        let Some(Value::List(names)) = report.value else { return Ok(Vec::new()) };
        let names = names.into_iter().filter_map(|name| match name {
            Value::Str(name) if name.chars().all(unicode_ident::is_xid_continue) => Some(name),
            _ => None,
        });
        Ok(names.take(COMPLETED_NAMES).collect())
    }

    pub(super) async fn delete(self: &Arc<Self>, variable: &str) -> Result<bool, Error> {
        let report = self.quick(Command::Delete(variable.to_owned())).await?;
        completed(&report, "the guest could not delete the variable")?;
        Ok(report.flag)
    }

    /// Registers tools and defines them in the guest, and the modules at its start.
    pub(super) async fn define(
        self: &Arc<Self>,
        tools: Vec<Tool>,
        submit: Vec<Arc<ToolSpec>>,
        modules: Option<DefinedModules>,
    ) -> Result<(), Error> {
        let command = Command::Define(definitions(&self.host, &tools, &submit, modules));
        // The owner requests this, and a session with tools cannot start without it. A short
        // run-time limit is not meant for it.
        let time = self.limits.run_time().max(DEFINE_TIME);
        let report = self.quick_within(command, time).await?;
        completed(&report, "the guest could not define the tools")?;
        for tool in tools {
            self.host.tools().register(tool);
        }
        Ok(())
    }
}

/// Describes functions to the guest, and lets it submit.
pub(super) fn definitions(
    host: &SessionHost,
    tools: &[Tool],
    submit: &[Arc<ToolSpec>],
    modules: Option<DefinedModules>,
) -> Definitions {
    let tools = tools.iter().map(Tool::shared_spec).collect();
    let numbered = |spec: &Arc<ToolSpec>| (host.tools().allow_submit(spec), Arc::clone(spec));
    Definitions { tools, submit: submit.iter().map(numbered).collect(), modules }
}

pub(super) fn unusable(message: String) -> Error {
    Error::new(ErrorKind::Value, message).with_session_alive()
}

/// Returns an error unless the guest carried out the command.
pub(super) fn completed(report: &Report, failure: &str) -> Result<(), Error> {
    match &report.status {
        Status::Raised(exception) => {
            let error = unusable(format!("{failure}: {exception}"));
            Err(error.with_exception(exception.clone()))
        }
        Status::Completed | Status::Exited(..) => Ok(()),
    }
}
