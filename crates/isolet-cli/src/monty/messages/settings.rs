//! The settings of a session.

use prost::{Message, Oneof};

use super::values::{TimeZone, Unit};

#[derive(Clone, Copy, PartialEq, Message)]
#[expect(clippy::struct_field_names, reason = "the names of the protocol")]
pub(in crate::monty) struct ResourceLimits {
    #[prost(uint64, optional, tag = "2")]
    pub(in crate::monty) max_memory_bytes: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(in crate::monty) max_recursion_depth: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(in crate::monty) max_suspensions: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    pub(in crate::monty) max_feed_duration_micros: Option<u64>,
    #[prost(uint64, optional, tag = "7")]
    pub(in crate::monty) max_turn_duration_micros: Option<u64>,
    #[prost(uint64, optional, tag = "8")]
    pub(in crate::monty) max_total_sleep_micros: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct OsPolicy {
    #[prost(message, optional, tag = "3")]
    pub(in crate::monty) fixed_clock: Option<FixedDateTime>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::monty) timezone: Option<SandboxTimeZone>,
    #[prost(message, optional, tag = "5")]
    pub(in crate::monty) sleep: Option<SleepMode>,
    #[prost(message, optional, tag = "8")]
    pub(in crate::monty) seed: Option<RandomSeed>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct SandboxTimeZone {
    #[prost(oneof = "Zone", tags = "1, 2, 3")]
    pub(in crate::monty) zone: Option<Zone>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Zone {
    #[prost(message, tag = "1")]
    Utc(Unit),
    #[prost(string, tag = "2")]
    Named(String),
    #[prost(message, tag = "3")]
    Fixed(TimeZone),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct SleepMode {
    #[prost(oneof = "Sleep", tags = "1, 2, 3")]
    pub(in crate::monty) mode: Option<Sleep>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Sleep {
    #[prost(message, tag = "1")]
    System(SystemSleep),
    #[prost(message, tag = "2")]
    CallHost(Unit),
    #[prost(message, tag = "3")]
    Zero(Unit),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::monty) struct SystemSleep {
    #[prost(uint64, optional, tag = "1")]
    pub(in crate::monty) max_micros: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::monty) struct FixedDateTime {
    #[prost(int64, tag = "1")]
    pub(in crate::monty) unix_seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct RandomSeed {
    #[prost(oneof = "Seed", tags = "1, 2, 3, 4")]
    pub(in crate::monty) value: Option<Seed>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Seed {
    #[prost(bytes, tag = "1")]
    Int(Vec<u8>),
    #[prost(double, tag = "2")]
    Float(f64),
    #[prost(string, tag = "3")]
    Str(String),
    #[prost(bytes, tag = "4")]
    Bytes(Vec<u8>),
}
