//! What a session tells of itself, as plain values.

use isolet::{Isolation, IsolationReport, LoadedPackage, Value, Variable};

pub(super) fn variables(variables: &[Variable]) -> Value {
    let one = |variable: &Variable| {
        Value::dict([
            ("name", variable.name.as_str()),
            ("type", variable.type_name.as_str()),
            ("repr", variable.repr.as_str()),
        ])
    };
    Value::List(variables.iter().map(one).collect())
}

pub(super) fn packages(packages: &[LoadedPackage]) -> Value {
    let one = |package: &LoadedPackage| {
        Value::dict([("name", package.name.as_str()), ("version", package.version.as_str())])
    };
    Value::List(packages.iter().map(one).collect())
}

pub(super) fn report(isolation: &IsolationReport) -> Value {
    let kind = match isolation.isolation() {
        Isolation::Thread => "thread",
        _ => "process",
    };
    let layers = isolation.layers();
    let layers = layers.map(|(layer, _)| (layer.to_string(), isolation.is_enforced(layer)));
    Value::dict([("isolation", kind.into()), ("layers", Value::dict(layers))])
}
