//! The parameters of a tool.

use std::fmt;

use super::hint::TypeHint;
use crate::data::value::Value;

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Param {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) hint: TypeHint,
    pub(crate) check: Check,
    pub(crate) kind: Kind,
    pub(crate) default: Default,
}

/// How a parameter may be passed, in the order of Python's signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    PositionalOnly,
    Standard,
    VarPositional,
    KeywordOnly,
    VarKeyword,
}

/// The default of a parameter that the guest does not pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Default {
    /// None: the parameter is required.
    Required,
    /// The host fills it in; the guest does not see the value.
    Unknown,
    /// Somebody beyond the host fills it in; the guest sees the value.
    Elsewhere(Value),
    Is(Value),
}

/// Whether the host checks an argument against its hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Checked,
    AnnotationOnly,
}

impl Param {
    /// Makes a required parameter of any type, which can be passed by position or by keyword.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            doc: String::new(),
            hint: TypeHint::Any,
            check: Check::Checked,
            kind: Kind::Standard,
            default: Default::Required,
        }
    }

    /// Sets the parameter's type, which the host checks before the tool runs.
    pub fn hint(mut self, hint: TypeHint) -> Self {
        self.hint = hint;
        self.check = Check::Checked;
        self
    }

    /// Sets the parameter's annotation, which the guest sees and nothing checks.
    pub fn annotation(mut self, hint: TypeHint) -> Self {
        self.hint = hint;
        self.check = Check::AnnotationOnly;
        self
    }

    /// Makes the parameter optional, with this default.
    pub fn default_value(mut self, value: impl Into<Value>) -> Self {
        self.default = Default::Is(value.into());
        self
    }

    /// Makes the parameter optional, without a default that the guest sees. If it is not passed, it
    /// is missing in the arguments of the call.
    pub fn optional(mut self) -> Self {
        self.default = Default::Unknown;
        self
    }

    /// Makes the parameter optional, with a default that the guest sees. If it is not passed, it is
    /// missing in the arguments of the call.
    pub fn display_default(mut self, value: Value) -> Self {
        self.default = Default::Elsewhere(value);
        self
    }

    /// Makes the parameter positional-only: `name, /` in Python.
    pub fn positional_only(mut self) -> Self {
        self.kind = Kind::PositionalOnly;
        self
    }

    /// Makes the parameter keyword-only: `*, name` in Python.
    pub fn keyword_only(mut self) -> Self {
        self.kind = Kind::KeywordOnly;
        self
    }

    /// Makes the parameter take all further positional arguments: `*name` in Python. In the
    /// arguments of a call it is a list, empty if there are none. Its type is that of each item.
    pub fn var_positional(mut self) -> Self {
        self.kind = Kind::VarPositional;
        self
    }

    /// Makes the parameter take all further keyword arguments: `**name` in Python. In the arguments
    /// of a call it is a dict, empty if there are none. Its type is that of each value.
    pub fn var_keyword(mut self) -> Self {
        self.kind = Kind::VarKeyword;
        self
    }

    /// Sets the parameter's documentation, which becomes part of the tool's docstring.
    pub fn doc(mut self, text: impl Into<String>) -> Self {
        self.doc = text.into();
        self
    }

    pub(crate) fn to_value(&self) -> Value {
        let (has_default, default) = match &self.default {
            Default::Required => ("no", Value::None),
            Default::Unknown => ("unknown", Value::None),
            Default::Elsewhere(value) => ("elsewhere", value.clone()),
            Default::Is(value) => ("yes", value.clone()),
        };
        Value::List(vec![
            self.name.as_str().into(),
            self.kind.key().into(),
            self.hint.to_value(),
            has_default.into(),
            default,
        ])
    }
}

impl Kind {
    /// Returns the kind in the form that the guest's glue expects.
    fn key(self) -> &'static str {
        match self {
            Self::PositionalOnly => "positional_only",
            Self::Standard => "standard",
            Self::VarPositional => "var_positional",
            Self::KeywordOnly => "keyword_only",
            Self::VarKeyword => "var_keyword",
        }
    }

    /// Returns what precedes the name in a signature.
    pub(super) fn stars(self) -> &'static str {
        match self {
            Self::VarPositional => "*",
            Self::VarKeyword => "**",
            _ => "",
        }
    }

    /// Returns `true` if the parameter takes one argument, which can be passed by position.
    pub(crate) fn is_positional(self) -> bool {
        matches!(self, Self::PositionalOnly | Self::Standard)
    }

    /// Returns `true` if the parameter takes one argument, which can be passed by keyword.
    pub(crate) fn is_keyword(self) -> bool {
        matches!(self, Self::Standard | Self::KeywordOnly)
    }

    /// Returns `true` if the parameter takes any number of arguments.
    pub(super) fn takes_many(self) -> bool {
        matches!(self, Self::VarPositional | Self::VarKeyword)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key().replace('_', "-"))
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.stars(), self.name)?;
        let annotated = self.hint != TypeHint::Any;
        if annotated {
            write!(f, ": {}", self.hint)?;
        }
        let equals = if annotated { " = " } else { "=" };
        match &self.default {
            Default::Required => Ok(()),
            Default::Unknown => write!(f, "{equals}..."),
            Default::Is(value) | Default::Elsewhere(value) => write!(f, "{equals}{value}"),
        }
    }
}
