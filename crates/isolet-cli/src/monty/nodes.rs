//! The nodes of arenas, as the guest's half has them: a scalar, or a list of a tag and its fields.

use isolet::{BigInt, Sign, Value};

use super::fields::Fields;
use super::messages::values::{
    Arena, BigInt as WireInt, Complex, Date, DateTime, Exception, Function, Indexes, Instance,
    Kind, Module, NamedTuple, Node, Pair, Pairs, Time, TimeDelta, TimeZone, Type, Unit, Uuid,
};

/// Returns the client's nodes for the guest. Fails if one refers to a later one.
pub(super) fn to_guest(arena: Option<Arena>) -> Result<Value, String> {
    let nodes = arena.unwrap_or_default().nodes;
    let nodes = nodes.into_iter().enumerate().map(|(at, node)| {
        let kind = node.kind.ok_or_else(|| format!("node {at} of the client has no kind"))?;
        node_to_guest(kind, Before(at))
    });
    Ok(Value::List(nodes.collect::<Result<_, _>>()?))
}

/// Returns an index of the client's if there is such a node.
pub(super) fn index(at: u32, nodes: &Value) -> Result<Value, String> {
    Before(nodes.as_list().map_or(0, <[Value]>::len)).index(at)
}

/// The node that refers to others, which come before it.
#[derive(Clone, Copy)]
struct Before(usize);

impl Before {
    fn index(self, at: u32) -> Result<Value, String> {
        if (at as usize) < self.0 {
            Ok(at.into())
        } else {
            Err(format!("the client refers to node {at}, there are {}", self.0))
        }
    }

    fn list(self, fields: &mut Vec<Value>, items: Vec<u32>) -> Result<(), String> {
        for item in items {
            fields.push(self.index(item)?);
        }
        Ok(())
    }

    fn pairs(self, fields: &mut Vec<Value>, pairs: Option<Pairs>) -> Result<(), String> {
        for Pair { key, value } in pairs.unwrap_or_default().pairs {
            fields.push(self.index(key)?);
            fields.push(self.index(value)?);
        }
        Ok(())
    }
}

fn node_to_guest(kind: Kind, before: Before) -> Result<Value, String> {
    let tagged = |tag: &str| vec![Value::from(tag)];
    let fields = |tag: &str, fields: &[Value]| {
        let mut all = tagged(tag);
        all.extend_from_slice(fields);
        Value::List(all)
    };
    let items = |tag: &str, indexes: Indexes| {
        let mut all = tagged(tag);
        before.list(&mut all, indexes.items)?;
        Ok::<_, String>(Value::List(all))
    };
    Ok(match kind {
        Kind::Ellipsis(_) => fields("ellipsis", &[]),
        Kind::None(_) => Value::None,
        Kind::NotImplemented(_) => fields("not_implemented", &[]),
        Kind::Boolean(value) => value.into(),
        Kind::Int(value) => value.into(),
        Kind::BigInt(mut value) => {
            let sign = if value.negative { Sign::Negative } else { Sign::NonNegative };
            value.magnitude.reverse();
            Value::from(BigInt::from_le_bytes(sign, &value.magnitude))
        }
        Kind::Float(value) => value.into(),
        Kind::Str(value) => value.into(),
        Kind::Bytes(value) => Value::Bytes(value),
        Kind::List(indexes) => items("list", indexes)?,
        Kind::Tuple(indexes) => items("tuple", indexes)?,
        Kind::Set(indexes) => items("set", indexes)?,
        Kind::FrozenSet(indexes) => items("frozenset", indexes)?,
        Kind::NamedTuple(tuple) => {
            let names = tuple.field_names.into_iter().map(Value::from).collect();
            let mut all = tagged("named");
            all.extend([tuple.type_name.into(), Value::List(names)]);
            before.list(&mut all, tuple.values)?;
            Value::List(all)
        }
        Kind::Dict(pairs) => {
            let mut all = tagged("dict");
            before.pairs(&mut all, Some(pairs))?;
            Value::List(all)
        }
        Kind::Date(date) => fields("date", &[date.year.into(), date.month.into(), date.day.into()]),
        Kind::Time(time) => fields(
            "time",
            &[
                time.hour.into(),
                time.minute.into(),
                time.second.into(),
                time.microsecond.into(),
                optional(time.offset_seconds),
                optional(time.timezone_name),
                time.fold.into(),
            ],
        ),
        Kind::DateTime(time) => fields(
            "datetime",
            &[
                time.year.into(),
                time.month.into(),
                time.day.into(),
                time.hour.into(),
                time.minute.into(),
                time.second.into(),
                time.microsecond.into(),
                optional(time.offset_seconds),
                optional(time.timezone_name),
            ],
        ),
        Kind::TimeDelta(delta) => fields(
            "timedelta",
            &[delta.days.into(), delta.seconds.into(), delta.microseconds.into()],
        ),
        Kind::TimeZone(zone) => {
            fields("timezone", &[zone.offset_seconds.into(), optional(zone.name)])
        }
        Kind::Exception(error) => {
            fields("exception", &[error.exc_type.into(), optional(error.arg)])
        }
        Kind::Type(kind) => {
            let mut all = tagged("type");
            all.extend([
                kind.name.into(),
                kind.id.map_or(Value::None, |id| Value::Bytes(id.data)),
                kind.origin.into(),
                kind.is_dataclass.into(),
            ]);
            before.pairs(&mut all, kind.attrs)?;
            Value::List(all)
        }
        Kind::Instance(instance) => {
            let mut all = tagged("instance");
            all.extend([before.index(instance.class_type)?, identity(instance.instance_id)]);
            before.pairs(&mut all, instance.attrs)?;
            Value::List(all)
        }
        Kind::Module(module) => {
            let mut all = tagged("module");
            all.extend([module.name.into(), identity(module.id)]);
            before.pairs(&mut all, module.attrs)?;
            Value::List(all)
        }
        Kind::Function(function) => {
            fields("function", &[function.name.into(), optional(function.docstring)])
        }
        Kind::Builtin(name) => fields("builtin", &[name.into()]),
        Kind::Path(path) => fields("path", &[path.into()]),
        Kind::File(file) => fields("file", &[file.path.into(), file.mode.into()]),
        Kind::Repr(text) => fields("repr", &[text.into()]),
        Kind::Cycle(text) => fields("cycle", &[text.into()]),
        Kind::Complex(value) => fields(
            "complex",
            &[value.real.unwrap_or_default().into(), value.imag.unwrap_or_default().into()],
        ),
        Kind::Decimal(text) => fields("decimal", &[text.into()]),
    })
}

fn optional(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::None, Into::into)
}

fn identity(id: Option<Uuid>) -> Value {
    Value::Bytes(id.unwrap_or_default().data)
}

/// Returns the guest's nodes for the client. Fails if one is malformed or refers to a later one.
pub(super) fn from_guest(nodes: Value) -> Result<Arena, String> {
    let Value::List(nodes) = nodes else { return Err("the nodes are no list".to_owned()) };
    let node_count = u32::try_from(nodes.len()).map_err(|_| "there are too many nodes")?;
    let nodes = nodes.into_iter().enumerate().map(|(at, node)| {
        let kind = node_from_guest(node, u32::try_from(at).unwrap_or(u32::MAX))
            .map_err(|reason| format!("node {at} is malformed: {reason}"))?;
        Ok(Node { kind: Some(kind) })
    });
    Ok(Arena { node_count, nodes: nodes.collect::<Result<_, String>>()? })
}

fn node_from_guest(node: Value, at: u32) -> Result<Kind, String> {
    let fields = match node {
        Value::None => return Ok(Kind::None(Unit {})),
        Value::Bool(value) => return Ok(Kind::Boolean(value)),
        Value::Int(value) => return Ok(Kind::Int(value)),
        Value::BigInt(value) => {
            let (sign, mut magnitude) = value.to_le_bytes();
            magnitude.reverse();
            return Ok(Kind::BigInt(WireInt { negative: sign == Sign::Negative, magnitude }));
        }
        Value::Float(value) => return Ok(Kind::Float(value)),
        Value::Str(value) => return Ok(Kind::Str(value)),
        Value::Bytes(value) => return Ok(Kind::Bytes(value)),
        Value::List(fields) => fields,
        _ => return Err("it is a dict".to_owned()),
    };
    let mut fields = Fields::new(fields);
    let tag = fields.text()?;
    let kind = match tag.as_str() {
        "ellipsis" => Kind::Ellipsis(Unit {}),
        "not_implemented" => Kind::NotImplemented(Unit {}),
        "list" => Kind::List(Indexes { items: fields.indexes(at)? }),
        "tuple" => Kind::Tuple(Indexes { items: fields.indexes(at)? }),
        "set" => Kind::Set(Indexes { items: fields.indexes(at)? }),
        "frozenset" => Kind::FrozenSet(Indexes { items: fields.indexes(at)? }),
        "dict" => Kind::Dict(pairs(&mut fields, at)?),
        "named" => {
            let type_name = fields.text()?;
            let field_names = fields.texts()?;
            let values = fields.indexes(at)?;
            if values.len() != field_names.len() {
                return Err(format!("{} names, {} values", field_names.len(), values.len()));
            }
            Kind::NamedTuple(NamedTuple { type_name, field_names, values })
        }
        "date" => {
            Kind::Date(Date { year: fields.int()?, month: fields.int()?, day: fields.int()? })
        }
        "time" => Kind::Time(Time {
            hour: fields.int()?,
            minute: fields.int()?,
            second: fields.int()?,
            microsecond: fields.int()?,
            offset_seconds: fields.optional_int()?,
            timezone_name: fields.optional_text()?,
            fold: fields.int()?,
        }),
        "datetime" => Kind::DateTime(DateTime {
            year: fields.int()?,
            month: fields.int()?,
            day: fields.int()?,
            hour: fields.int()?,
            minute: fields.int()?,
            second: fields.int()?,
            microsecond: fields.int()?,
            offset_seconds: fields.optional_int()?,
            timezone_name: fields.optional_text()?,
        }),
        "timedelta" => Kind::TimeDelta(TimeDelta {
            days: fields.int()?,
            seconds: fields.int()?,
            microseconds: fields.int()?,
        }),
        "timezone" => Kind::TimeZone(TimeZone {
            offset_seconds: fields.int()?,
            name: fields.optional_text()?,
        }),
        "exception" => {
            Kind::Exception(Exception { exc_type: fields.text()?, arg: fields.optional_text()? })
        }
        "type" => {
            let name = fields.text()?;
            let id = fields.optional_identity()?;
            let (origin, is_dataclass) = (fields.int()?, fields.bool()?);
            Kind::Type(Type { name, id, origin, is_dataclass, attrs: None })
        }
        "instance" => Kind::Instance(Instance {
            class_type: fields.index(at)?,
            instance_id: Some(fields.identity()?),
            attrs: Some(pairs(&mut fields, at)?),
        }),
        "module" => Kind::Module(Module {
            name: fields.text()?,
            id: Some(fields.identity()?),
            attrs: Some(pairs(&mut fields, at)?),
        }),
        "function" => {
            Kind::Function(Function { name: fields.text()?, docstring: fields.optional_text()? })
        }
        "path" => Kind::Path(fields.text()?),
        "repr" => Kind::Repr(fields.text()?),
        "cycle" => Kind::Cycle(fields.text()?),
        "complex" => {
            Kind::Complex(Complex { real: Some(fields.float()?), imag: Some(fields.float()?) })
        }
        "decimal" => Kind::Decimal(fields.text()?),
        tag => return Err(format!("the tag {tag:?} is unknown")),
    };
    fields.end()?;
    Ok(kind)
}

fn pairs(fields: &mut Fields, at: u32) -> Result<Pairs, String> {
    Ok(Pairs { pairs: fields.pairs(at)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<const N: usize>(items: [Value; N]) -> Value {
        Value::List(items.into())
    }

    #[test]
    fn nodes_come_back_as_they_went() {
        let nodes = list([
            1.into(),
            Value::from(i64::MIN),
            Value::from(-(1_i128 << 70)),
            list(["list".into(), 0.into(), 1.into()]),
            list(["named".into(), "P".into(), list(["x".into()]), 3.into()]),
            list(["dict".into(), 0.into(), 4.into()]),
            list([
                "time".into(),
                1.into(),
                2.into(),
                3.into(),
                4.into(),
                0.into(),
                "Z".into(),
                1.into(),
            ]),
            list(["complex".into(), (-0.0).into(), f64::INFINITY.into()]),
            Value::bytes(*b"\xff"),
            list(["repr".into(), "<x>".into()]),
        ]);
        let arena = from_guest(nodes.clone()).unwrap();
        assert_eq!(to_guest(Some(arena)).unwrap(), nodes);
    }

    #[test]
    fn malformed_nodes_of_a_guest_are_refused() {
        let refused = |node: Value, reason: &str| {
            let error = from_guest(list([0.into(), node])).unwrap_err();
            assert_eq!(error, format!("node 1 is malformed: {reason}"));
        };
        refused(list([]), "a field is missing");
        refused(list(["list".into(), 1.into()]), "it refers to node 1");
        refused(list(["list".into(), (-1).into()]), "it refers to node -1");
        refused(list(["dict".into(), 0.into()]), "a field is missing");
        refused(list(["path".into(), "a".into(), "b".into()]), "there are fields too many");
        refused(list(["named".into(), "P".into(), list(["x".into()])]), "1 names, 0 values");
        refused(list(["date".into(), (1_i64 << 40).into()]), "1099511627776 is out of range");
        refused(list(["no".into()]), "the tag \"no\" is unknown");
        refused(Value::Dict(Vec::new()), "it is a dict");
    }

    #[test]
    fn a_client_refers_to_earlier_nodes_only() {
        let node = Node { kind: Some(Kind::List(Indexes { items: vec![0] })) };
        let error = to_guest(Some(Arena { node_count: 1, nodes: vec![node] })).unwrap_err();
        assert_eq!(error, "the client refers to node 0, there are 0");
    }
}
