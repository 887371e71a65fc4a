//! Asserts at compile time which public types can move between threads and be shared by them.

use std::future::Future;

use crate::api::blocking;
use crate::api::engine::{Engine, EngineBuilder};
use crate::api::permissions::Permissions;
use crate::api::sandbox::{Sandbox, SandboxBuilder};
use crate::api::session::{Files, InterruptHandle, Session};
use crate::api::stream::{RunOutput, RunStream};
use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::execution::{Execution, Outcome, PyException};
use crate::data::isolation::IsolationReport;
use crate::data::limits::Limits;
use crate::data::stdin::Stdin;
use crate::data::terminal::Terminal;
use crate::data::tool::{ObjectHint, Param, ToolError, ToolSpec};
use crate::data::value::Value;
use crate::fs::{ExportDirectory, Mount};
use crate::host::audit::AuditEvent;
use crate::host::stop::ClockPause;
use crate::host::tools::{SessionHandle, Tool, ToolContext, ToolModule};
use crate::packages::LoadedPackage;

const fn sent<T: Send>() {}
const fn shared<T: Send + Sync>() {}

// Plain data, policy, and handles.
const _: () = {
    shared::<AuditEvent>();
    shared::<ClockPause>();
    shared::<Engine>();
    shared::<EngineBuilder>();
    shared::<Error>();
    shared::<Execution>();
    shared::<ExportDirectory>();
    shared::<InterruptHandle>();
    shared::<IsolationReport>();
    shared::<Limits>();
    shared::<LoadedPackage>();
    shared::<Mount>();
    shared::<ObjectHint>();
    shared::<Outcome>();
    shared::<Param>();
    shared::<Permissions>();
    shared::<PyException>();
    shared::<Sandbox>();
    shared::<SandboxBuilder>();
    shared::<SessionHandle>();
    shared::<Terminal>();
    shared::<Tool>();
    shared::<ToolContext>();
    shared::<ToolModule>();
    shared::<ToolError>();
    shared::<ToolSpec>();
    shared::<Value>();
    shared::<blocking::Engine>();
    shared::<blocking::Sandbox>();
    shared::<blocking::SessionHandle>();
};

// A run needs `&mut Session`; `&Session` reads variables and makes handles.
const _: () = {
    shared::<Session>();
    shared::<Files<'static>>();
    shared::<blocking::Session>();
    shared::<blocking::Files<'static>>();
};

// One thread at a time.
const _: () = {
    sent::<Cell>();
    sent::<Stdin>();
    sent::<RunOutput>();
    sent::<RunStream<'static>>();
    sent::<blocking::RunOutput>();
    sent::<blocking::RunStream<'static>>();
};

/// The futures can be spawned on a runtime with several threads.
#[expect(dead_code, reason = "only compiled")]
fn futures(session: &mut Session, sandbox: &Sandbox) {
    fn sent(_: impl Future + Send) {}
    sent(sandbox.session());
    sent(sandbox.run("1"));
    sent(session.run("1"));
    sent(session.run_streaming("1").finish());
    sent(session.get("x"));
    sent(session.files().get("x"));
}
