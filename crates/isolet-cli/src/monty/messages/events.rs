//! The worker's reports and requests to the client.

use prost::{Message, Oneof};

use super::values::{Arena, Pair, Unit, Uuid};

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct RaisedException {
    #[prost(string, tag = "1")]
    pub(in crate::monty) exc_type: String,
    #[prost(string, optional, tag = "2")]
    pub(in crate::monty) message: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::monty) traceback: Vec<StackFrame>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::monty) data: Option<ExcData>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ExcData {
    #[prost(oneof = "Details", tags = "1, 2")]
    pub(in crate::monty) kind: Option<Details>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Details {
    #[prost(message, tag = "1")]
    Unicode(UnicodeErrorData),
    #[prost(message, tag = "2")]
    Json(JsonErrorData),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct UnicodeErrorData {
    #[prost(string, tag = "1")]
    pub(in crate::monty) encoding: String,
    #[prost(oneof = "Cause", tags = "2, 3")]
    pub(in crate::monty) object: Option<Cause>,
    #[prost(uint64, tag = "4")]
    pub(in crate::monty) start: u64,
    #[prost(uint64, tag = "5")]
    pub(in crate::monty) end: u64,
    #[prost(string, tag = "6")]
    pub(in crate::monty) reason: String,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Cause {
    #[prost(bytes, tag = "2")]
    Bytes(Vec<u8>),
    #[prost(string, tag = "3")]
    Str(String),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct JsonErrorData {
    #[prost(string, tag = "1")]
    pub(in crate::monty) msg: String,
    #[prost(string, optional, tag = "2")]
    pub(in crate::monty) doc: Option<String>,
    #[prost(uint64, tag = "3")]
    pub(in crate::monty) pos: u64,
    #[prost(uint64, tag = "4")]
    pub(in crate::monty) lineno: u64,
    #[prost(uint64, tag = "5")]
    pub(in crate::monty) colno: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::monty) struct CodeLoc {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) line: u32,
    #[prost(uint32, tag = "2")]
    pub(in crate::monty) column: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct SourceRange {
    #[prost(string, tag = "1")]
    pub(in crate::monty) filename: String,
    #[prost(uint32, tag = "2")]
    pub(in crate::monty) start: u32,
    #[prost(uint32, tag = "3")]
    pub(in crate::monty) end: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct StackFrame {
    #[prost(string, tag = "1")]
    pub(in crate::monty) filename: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) start: Option<CodeLoc>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::monty) end: Option<CodeLoc>,
    #[prost(string, optional, tag = "4")]
    pub(in crate::monty) frame_name: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub(in crate::monty) preview_line: Option<String>,
    #[prost(bool, tag = "6")]
    pub(in crate::monty) hide_caret: bool,
    #[prost(bool, tag = "7")]
    pub(in crate::monty) hide_frame_name: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ChildEvent {
    #[prost(oneof = "Event", tags = "1, 2, 3, 4, 5, 6, 7, 10, 11")]
    pub(in crate::monty) kind: Option<Event>,
    #[prost(uint64, tag = "20")]
    pub(in crate::monty) total_execution_micros: u64,
    #[prost(uint64, optional, tag = "22")]
    pub(in crate::monty) max_suspensions: Option<u64>,
    #[prost(uint64, tag = "24")]
    pub(in crate::monty) feed_execution_micros: u64,
    #[prost(uint64, optional, tag = "25")]
    pub(in crate::monty) max_feed_duration_micros: Option<u64>,
    #[prost(uint64, optional, tag = "26")]
    pub(in crate::monty) max_turn_duration_micros: Option<u64>,
    #[prost(uint64, optional, tag = "27")]
    pub(in crate::monty) max_total_sleep_micros: Option<u64>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Event {
    #[prost(message, tag = "1")]
    Print(Print),
    #[prost(message, tag = "2")]
    FunctionCall(FunctionCall),
    #[prost(message, tag = "3")]
    OsCall(OsCall),
    #[prost(message, tag = "4")]
    NameLookup(NameLookup),
    #[prost(message, tag = "5")]
    ResolveFutures(ResolveFutures),
    #[prost(message, tag = "6")]
    Complete(Complete),
    #[prost(message, tag = "7")]
    Error(ErrorEvent),
    #[prost(message, tag = "10")]
    Ok(Unit),
    #[prost(message, tag = "11")]
    FatalError(FatalError),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct PrintSegment {
    #[prost(int32, tag = "1")]
    pub(in crate::monty) stream: i32,
    #[prost(string, tag = "2")]
    pub(in crate::monty) text: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Print {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::monty) segments: Vec<PrintSegment>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct FunctionCall {
    #[prost(string, tag = "1")]
    pub(in crate::monty) function_name: String,
    #[prost(uint32, repeated, tag = "2")]
    pub(in crate::monty) args: Vec<u32>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::monty) kwargs: Vec<Pair>,
    #[prost(uint32, tag = "4")]
    pub(in crate::monty) call_id: u32,
    #[prost(message, optional, tag = "5")]
    pub(in crate::monty) object_id: Option<Uuid>,
    #[prost(message, optional, tag = "7")]
    pub(in crate::monty) values: Option<Arena>,
    #[prost(message, optional, tag = "8")]
    pub(in crate::monty) position: Option<SourceRange>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct OsCall {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) call_id: u32,
    #[prost(
        oneof = "Call",
        tags = "2, 3, 4, 6, 7, 8, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21, 27, 28, 29, 30, 31"
    )]
    pub(in crate::monty) call: Option<Call>,
    #[prost(message, optional, tag = "50")]
    pub(in crate::monty) values: Option<Arena>,
    #[prost(message, optional, tag = "52")]
    pub(in crate::monty) position: Option<SourceRange>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Call {
    #[prost(string, tag = "2")]
    Exists(String),
    #[prost(string, tag = "3")]
    IsFile(String),
    #[prost(string, tag = "4")]
    IsDir(String),
    #[prost(string, tag = "6")]
    ReadText(String),
    #[prost(string, tag = "7")]
    ReadBytes(String),
    #[prost(string, tag = "8")]
    Stat(String),
    #[prost(string, tag = "9")]
    Iterdir(String),
    #[prost(string, tag = "12")]
    Unlink(String),
    #[prost(string, tag = "13")]
    Rmdir(String),
    #[prost(message, tag = "14")]
    WriteText(TextWritten),
    #[prost(message, tag = "16")]
    WriteBytes(Written),
    #[prost(message, tag = "17")]
    AppendBytes(Written),
    #[prost(message, tag = "18")]
    Open(Open),
    #[prost(message, tag = "19")]
    Mkdir(Mkdir),
    #[prost(message, tag = "20")]
    Rename(Rename),
    #[prost(message, tag = "21")]
    Getenv(Getenv),
    #[prost(message, tag = "27")]
    Sleep(Seconds),
    #[prost(message, tag = "28")]
    AsyncSleep(Seconds),
    #[prost(message, tag = "29")]
    SystemSleep(Seconds),
    #[prost(message, tag = "30")]
    AsyncSystemSleep(Seconds),
    #[prost(message, tag = "31")]
    Import(Import),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Written {
    #[prost(string, tag = "1")]
    pub(in crate::monty) path: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(in crate::monty) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct TextWritten {
    #[prost(string, tag = "1")]
    pub(in crate::monty) path: String,
    #[prost(string, tag = "2")]
    pub(in crate::monty) data: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Open {
    #[prost(string, tag = "1")]
    pub(in crate::monty) path: String,
    #[prost(string, tag = "2")]
    pub(in crate::monty) mode: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Mkdir {
    #[prost(string, tag = "1")]
    pub(in crate::monty) path: String,
    #[prost(bool, tag = "2")]
    pub(in crate::monty) parents: bool,
    #[prost(bool, tag = "3")]
    pub(in crate::monty) exist_ok: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Rename {
    #[prost(string, tag = "1")]
    pub(in crate::monty) src: String,
    #[prost(string, tag = "2")]
    pub(in crate::monty) dst: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Getenv {
    #[prost(string, tag = "1")]
    pub(in crate::monty) key: String,
    #[prost(uint32, tag = "2")]
    pub(in crate::monty) default: u32,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::monty) struct Seconds {
    #[prost(double, tag = "1")]
    pub(in crate::monty) seconds: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Import {
    #[prost(string, tag = "1")]
    pub(in crate::monty) module: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct NameLookup {
    #[prost(string, tag = "1")]
    pub(in crate::monty) name: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) object_id: Option<Uuid>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::monty) position: Option<SourceRange>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ResolveFutures {
    #[prost(uint32, repeated, tag = "1")]
    pub(in crate::monty) pending_call_ids: Vec<u32>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) position: Option<SourceRange>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Complete {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) value: u32,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) values: Option<Arena>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ErrorEvent {
    #[prost(message, optional, tag = "1")]
    pub(in crate::monty) exception: Option<RaisedException>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct FatalError {
    #[prost(string, tag = "1")]
    pub(in crate::monty) message: String,
}
