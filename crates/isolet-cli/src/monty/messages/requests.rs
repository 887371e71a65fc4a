//! The client's requests, and its answers.

use prost::{Message, Oneof};

use super::events::RaisedException;
use super::settings::{OsPolicy, ResourceLimits};
use super::values::{Arena, Unit};

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ParentRequest {
    #[prost(oneof = "Request", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11")]
    pub(in crate::monty) kind: Option<Request>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Request {
    #[prost(message, boxed, tag = "1")]
    Configure(Box<Configure>),
    #[prost(message, tag = "2")]
    InstallDependencies(InstallDependencies),
    #[prost(message, tag = "3")]
    Feed(Feed),
    #[prost(message, tag = "4")]
    ResumeCall(ResumeCall),
    #[prost(message, tag = "5")]
    ResumeNameLookup(ResumeNameLookup),
    #[prost(message, tag = "6")]
    ResumeFutures(ResumeFutures),
    #[prost(message, tag = "7")]
    Dump(Unit),
    #[prost(message, tag = "8")]
    Load(Unit),
    #[prost(message, tag = "9")]
    Reset(Unit),
    #[prost(message, tag = "10")]
    Shutdown(Unit),
    #[prost(message, tag = "11")]
    AbortFeed(AbortFeed),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Configure {
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) limits: Option<ResourceLimits>,
    #[prost(string, tag = "5")]
    pub(in crate::monty) monty_version: String,
    #[prost(uint32, tag = "9")]
    pub(in crate::monty) protocol_version: u32,
    #[prost(uint32, optional, tag = "10")]
    pub(in crate::monty) print_flush_interval_ms: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(in crate::monty) os_policy: Option<OsPolicy>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct InstallDependencies {
    #[prost(string, repeated, tag = "1")]
    pub(in crate::monty) requirements: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct NamedRef {
    #[prost(string, tag = "1")]
    pub(in crate::monty) name: String,
    #[prost(uint32, tag = "2")]
    pub(in crate::monty) value: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Feed {
    #[prost(string, tag = "1")]
    pub(in crate::monty) code: String,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::monty) inputs: Vec<NamedRef>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::monty) values: Option<Arena>,
    #[prost(string, tag = "5")]
    pub(in crate::monty) cwd: String,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct AbortFeed {
    #[prost(message, optional, tag = "1")]
    pub(in crate::monty) exception: Option<RaisedException>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ExtFunctionResult {
    #[prost(oneof = "Outcome", tags = "1, 2, 3, 4, 5")]
    pub(in crate::monty) kind: Option<Outcome>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Outcome {
    #[prost(uint32, tag = "1")]
    ReturnValue(u32),
    #[prost(message, tag = "2")]
    Error(RaisedException),
    #[prost(uint32, tag = "3")]
    Future(u32),
    #[prost(string, tag = "4")]
    NotFound(String),
    #[prost(message, tag = "5")]
    NotHandled(Unit),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct FutureResult {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) call_id: u32,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) result: Option<ExtFunctionResult>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ResumeCall {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) call_id: u32,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) result: Option<ExtFunctionResult>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::monty) values: Option<Arena>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ResumeNameLookup {
    #[prost(message, optional, tag = "1")]
    pub(in crate::monty) values: Option<Arena>,
    #[prost(oneof = "Found", tags = "2, 3, 4")]
    pub(in crate::monty) kind: Option<Found>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Found {
    #[prost(uint32, tag = "2")]
    Value(u32),
    #[prost(message, tag = "3")]
    Undefined(Unit),
    #[prost(message, tag = "4")]
    Error(RaisedException),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct ResumeFutures {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::monty) results: Vec<FutureResult>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) values: Option<Arena>,
}
