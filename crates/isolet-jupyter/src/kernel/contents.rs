//! The contents of requests and of what answers them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "as the protocol has it")]
pub(super) struct ExecuteRequest {
    pub(super) code: String,
    #[serde(default)]
    pub(super) silent: bool,
    #[serde(default = "yes")]
    pub(super) store_history: bool,
    #[serde(default)]
    pub(super) user_expressions: HashMap<String, String>,
    #[serde(default)]
    pub(super) allow_stdin: bool,
    #[serde(default = "yes")]
    pub(super) stop_on_error: bool,
}

#[derive(Deserialize)]
pub(super) struct CompleteRequest {
    pub(super) code: String,
    /// In characters.
    pub(super) cursor_pos: usize,
}

#[derive(Deserialize)]
pub(super) struct InspectRequest {
    pub(super) code: String,
    /// In characters.
    pub(super) cursor_pos: usize,
    #[serde(default)]
    pub(super) detail_level: u8,
}

#[derive(Deserialize)]
pub(super) struct IsCompleteRequest {
    pub(super) code: String,
}

#[derive(Deserialize)]
pub(super) struct HistoryRequest {
    #[serde(default)]
    pub(super) output: bool,
    #[serde(flatten)]
    pub(super) access: Access,
}

/// Which entries of the history are wanted.
#[derive(Deserialize)]
#[serde(tag = "hist_access_type", rename_all = "lowercase")]
pub(super) enum Access {
    Tail {
        n: usize,
    },
    Range {
        #[serde(default)]
        session: i64,
        start: i64,
        stop: Option<i64>,
    },
    Search {
        pattern: String,
        n: Option<usize>,
        #[serde(default)]
        unique: bool,
    },
}

#[derive(Deserialize)]
pub(super) struct InputReply {
    pub(super) value: String,
}

#[derive(Default, Deserialize)]
pub(super) struct ShutdownRequest {
    #[serde(default)]
    pub(super) restart: bool,
}

#[derive(Default, Deserialize)]
pub(super) struct CommInfoRequest {
    #[serde(default)]
    pub(super) target_name: Option<String>,
}

/// The parts of a comm's message that the host looks at.
#[derive(Deserialize)]
pub(super) struct CommContent {
    pub(super) comm_id: String,
    #[serde(default)]
    pub(super) target_name: Option<String>,
}

/// What a guest displays to change it later.
#[derive(Deserialize, Serialize)]
pub(super) struct DisplayContent {
    pub(super) data: Map<String, Json>,
    #[serde(default)]
    pub(super) metadata: Map<String, Json>,
    pub(super) transient: Transient,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Transient {
    pub(super) display_id: String,
}

#[derive(Deserialize, Serialize)]
pub(super) struct ClearOutput {
    pub(super) wait: bool,
}

#[derive(Deserialize, Serialize)]
pub(super) struct InputRequest {
    pub(super) prompt: String,
    pub(super) password: bool,
}

#[derive(Serialize)]
pub(super) struct Status {
    pub(super) execution_state: State,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Starting,
    Busy,
    Idle,
}

#[derive(Serialize)]
pub(super) struct Stream<'a> {
    pub(super) name: &'static str,
    pub(super) text: &'a str,
}

#[derive(Serialize)]
pub(super) struct ExecuteInput<'a> {
    pub(super) code: &'a str,
    pub(super) execution_count: u64,
}

#[derive(Serialize)]
pub(super) struct DisplayData {
    pub(super) data: Map<String, Json>,
    pub(super) metadata: Map<String, Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) execution_count: Option<u64>,
}

/// What went wrong, in a published error and in an answer.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct ErrorContent {
    pub(super) ename: String,
    pub(super) evalue: String,
    pub(super) traceback: Vec<String>,
}

/// An answer by how the request went.
#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub(super) enum Answer<T> {
    Ok(T),
    Error(ErrorContent),
}

/// The value of an expression of the front end.
#[derive(Deserialize, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub(super) enum Evaluated {
    Ok { data: Map<String, Json>, metadata: Empty },
    Error(ErrorContent),
}

#[derive(Deserialize, Serialize)]
pub(super) struct Empty {}

#[derive(Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub(super) enum ExecuteReply {
    Ok {
        execution_count: u64,
        user_expressions: HashMap<String, Evaluated>,
        payload: [(); 0],
    },
    Error {
        execution_count: u64,
        #[serde(flatten)]
        error: ErrorContent,
        user_expressions: Empty,
        payload: [(); 0],
    },
    Aborted,
}

#[derive(Serialize)]
pub(super) struct CompleteReply {
    pub(super) matches: Vec<String>,
    pub(super) cursor_start: usize,
    pub(super) cursor_end: usize,
    pub(super) metadata: Empty,
}

#[derive(Serialize)]
pub(super) struct InspectReply {
    pub(super) found: bool,
    pub(super) data: Map<String, Json>,
    pub(super) metadata: Empty,
}

#[derive(Serialize)]
pub(super) struct HistoryReply<'a> {
    pub(super) history: Vec<HistoryEntry<'a>>,
}

/// An entry of the history: its session, its number and the cell.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum HistoryEntry<'a> {
    Input(i64, u64, &'a str),
    WithOutput(i64, u64, (&'a str, Option<&'a str>)),
}

#[derive(Serialize)]
pub(super) struct CommInfoReply<'a> {
    pub(super) comms: HashMap<&'a str, CommInfo<'a>>,
}

#[derive(Serialize)]
pub(super) struct CommInfo<'a> {
    pub(super) target_name: &'a str,
}

#[derive(Serialize)]
pub(super) struct ShutdownReply {
    pub(super) restart: bool,
}

#[derive(Serialize)]
pub(super) struct CommClose<'a> {
    pub(super) comm_id: &'a str,
    pub(super) data: Empty,
}

#[derive(Serialize)]
pub(super) struct KernelInfoReply<'a> {
    pub(super) protocol_version: &'static str,
    pub(super) implementation: &'static str,
    pub(super) implementation_version: &'static str,
    pub(super) language_info: LanguageInfo<'a>,
    pub(super) banner: String,
    pub(super) help_links: [(); 0],
    pub(super) debugger: bool,
    pub(super) supported_features: [(); 0],
}

#[derive(Serialize)]
pub(super) struct LanguageInfo<'a> {
    pub(super) name: &'static str,
    pub(super) version: &'a str,
    pub(super) mimetype: &'static str,
    pub(super) file_extension: &'static str,
    pub(super) pygments_lexer: &'static str,
    pub(super) codemirror_mode: CodemirrorMode,
    pub(super) nbconvert_exporter: &'static str,
}

#[derive(Serialize)]
pub(super) struct CodemirrorMode {
    pub(super) name: &'static str,
    pub(super) version: u8,
}

impl From<isolet_support::mime_bundle::CellError> for ErrorContent {
    fn from(error: isolet_support::mime_bundle::CellError) -> Self {
        Self { ename: error.name, evalue: error.message, traceback: error.traceback }
    }
}
