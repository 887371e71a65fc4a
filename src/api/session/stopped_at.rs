//! Where a run was stopped that is looked back at.

use crate::data::value::Value;

/// Where a run was stopped that is looked back at, as the guest says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoppedAt {
    /// The name of the function, `<module>` for code outside of functions.
    pub function: String,
    /// The line in its file or cell, counted from 1.
    pub line: u64,
    /// The names of its local variables, sorted; none outside of functions.
    pub names: Vec<String>,
}

impl StoppedAt {
    pub(super) fn read(value: Value) -> Option<Self> {
        let Value::List(parts) = value else { return None };
        let [function, line, names] = parts.try_into().ok()?;
        let names = names.as_list()?.iter().filter_map(Value::as_str).map(str::to_owned);
        Some(Self {
            function: function.as_str()?.to_owned(),
            line: u64::try_from(line.as_i64()?).ok()?,
            names: names.collect(),
        })
    }
}
