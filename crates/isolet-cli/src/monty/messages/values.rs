//! Python objects, as a flat list of nodes.

use prost::{Message, Oneof};

#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::monty) struct Unit {}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Arena {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) node_count: u32,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::monty) nodes: Vec<Node>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Node {
    #[prost(
        oneof = "Kind",
        tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, \
                25, 26, 27, 28, 29, 30, 31, 32, 33"
    )]
    pub(in crate::monty) kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(in crate::monty) enum Kind {
    #[prost(message, tag = "1")]
    Ellipsis(Unit),
    #[prost(message, tag = "2")]
    None(Unit),
    #[prost(message, tag = "3")]
    NotImplemented(Unit),
    #[prost(bool, tag = "4")]
    Boolean(bool),
    #[prost(sint64, tag = "5")]
    Int(i64),
    #[prost(message, tag = "6")]
    BigInt(BigInt),
    #[prost(double, tag = "7")]
    Float(f64),
    #[prost(string, tag = "8")]
    Str(String),
    #[prost(bytes, tag = "9")]
    Bytes(Vec<u8>),
    #[prost(message, tag = "11")]
    List(Indexes),
    #[prost(message, tag = "12")]
    Tuple(Indexes),
    #[prost(message, tag = "13")]
    NamedTuple(NamedTuple),
    #[prost(message, tag = "14")]
    Dict(Pairs),
    #[prost(message, tag = "15")]
    Set(Indexes),
    #[prost(message, tag = "16")]
    FrozenSet(Indexes),
    #[prost(message, tag = "17")]
    Date(Date),
    #[prost(message, tag = "18")]
    Time(Time),
    #[prost(message, tag = "19")]
    DateTime(DateTime),
    #[prost(message, tag = "20")]
    TimeDelta(TimeDelta),
    #[prost(message, tag = "21")]
    TimeZone(TimeZone),
    #[prost(message, tag = "22")]
    Exception(Exception),
    #[prost(message, tag = "23")]
    Type(Type),
    #[prost(message, tag = "24")]
    Instance(Instance),
    #[prost(message, tag = "25")]
    Function(Function),
    #[prost(string, tag = "26")]
    Builtin(String),
    #[prost(string, tag = "27")]
    Path(String),
    #[prost(message, tag = "28")]
    File(FileHandle),
    #[prost(string, tag = "29")]
    Repr(String),
    #[prost(string, tag = "30")]
    Cycle(String),
    #[prost(message, tag = "31")]
    Complex(Complex),
    #[prost(message, tag = "32")]
    Module(Module),
    #[prost(string, tag = "33")]
    Decimal(String),
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Indexes {
    #[prost(uint32, repeated, tag = "1")]
    pub(in crate::monty) items: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::monty) struct Pair {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) key: u32,
    #[prost(uint32, tag = "2")]
    pub(in crate::monty) value: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Pairs {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::monty) pairs: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct BigInt {
    #[prost(bool, tag = "1")]
    pub(in crate::monty) negative: bool,
    #[prost(bytes = "vec", tag = "2")]
    pub(in crate::monty) magnitude: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Complex {
    #[prost(double, optional, tag = "1")]
    pub(in crate::monty) real: Option<f64>,
    #[prost(double, optional, tag = "2")]
    pub(in crate::monty) imag: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct NamedTuple {
    #[prost(string, tag = "1")]
    pub(in crate::monty) type_name: String,
    #[prost(string, repeated, tag = "2")]
    pub(in crate::monty) field_names: Vec<String>,
    #[prost(uint32, repeated, tag = "3")]
    pub(in crate::monty) values: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Date {
    #[prost(int32, tag = "1")]
    pub(in crate::monty) year: i32,
    #[prost(uint32, tag = "2")]
    pub(in crate::monty) month: u32,
    #[prost(uint32, tag = "3")]
    pub(in crate::monty) day: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct DateTime {
    #[prost(int32, tag = "1")]
    pub(in crate::monty) year: i32,
    #[prost(uint32, tag = "2")]
    pub(in crate::monty) month: u32,
    #[prost(uint32, tag = "3")]
    pub(in crate::monty) day: u32,
    #[prost(uint32, tag = "4")]
    pub(in crate::monty) hour: u32,
    #[prost(uint32, tag = "5")]
    pub(in crate::monty) minute: u32,
    #[prost(uint32, tag = "6")]
    pub(in crate::monty) second: u32,
    #[prost(uint32, tag = "7")]
    pub(in crate::monty) microsecond: u32,
    #[prost(int32, optional, tag = "8")]
    pub(in crate::monty) offset_seconds: Option<i32>,
    #[prost(string, optional, tag = "9")]
    pub(in crate::monty) timezone_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Time {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) hour: u32,
    #[prost(uint32, tag = "2")]
    pub(in crate::monty) minute: u32,
    #[prost(uint32, tag = "3")]
    pub(in crate::monty) second: u32,
    #[prost(uint32, tag = "4")]
    pub(in crate::monty) microsecond: u32,
    #[prost(int32, optional, tag = "5")]
    pub(in crate::monty) offset_seconds: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(in crate::monty) timezone_name: Option<String>,
    #[prost(uint32, tag = "7")]
    pub(in crate::monty) fold: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct TimeDelta {
    #[prost(int32, tag = "1")]
    pub(in crate::monty) days: i32,
    #[prost(int32, tag = "2")]
    pub(in crate::monty) seconds: i32,
    #[prost(int32, tag = "3")]
    pub(in crate::monty) microseconds: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct TimeZone {
    #[prost(int32, tag = "1")]
    pub(in crate::monty) offset_seconds: i32,
    #[prost(string, optional, tag = "2")]
    pub(in crate::monty) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Exception {
    #[prost(string, tag = "1")]
    pub(in crate::monty) exc_type: String,
    #[prost(string, optional, tag = "2")]
    pub(in crate::monty) arg: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct FileHandle {
    #[prost(string, tag = "1")]
    pub(in crate::monty) path: String,
    #[prost(string, tag = "2")]
    pub(in crate::monty) mode: String,
    #[prost(uint64, tag = "3")]
    pub(in crate::monty) position: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Uuid {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::monty) data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Type {
    #[prost(string, tag = "1")]
    pub(in crate::monty) name: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) id: Option<Uuid>,
    #[prost(int32, tag = "3")]
    pub(in crate::monty) origin: i32,
    #[prost(bool, tag = "4")]
    pub(in crate::monty) is_dataclass: bool,
    #[prost(message, optional, tag = "5")]
    pub(in crate::monty) attrs: Option<Pairs>,
}

#[derive(Clone, PartialEq, Message)]
#[expect(clippy::struct_field_names, reason = "the names of the protocol")]
pub(in crate::monty) struct Instance {
    #[prost(uint32, tag = "1")]
    pub(in crate::monty) class_type: u32,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) instance_id: Option<Uuid>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::monty) attrs: Option<Pairs>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Module {
    #[prost(string, tag = "1")]
    pub(in crate::monty) name: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::monty) id: Option<Uuid>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::monty) attrs: Option<Pairs>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::monty) struct Function {
    #[prost(string, tag = "1")]
    pub(in crate::monty) name: String,
    #[prost(string, optional, tag = "2")]
    pub(in crate::monty) docstring: Option<String>,
}
