//! The specification of a tool: its name, parameters and documentation.

use std::fmt;

use super::hint::TypeHint;
use super::name;
use crate::data::error::{Error, ErrorKind};
use crate::data::value::Value;

/// What the guest sees of a tool. `help()` and `inspect.signature` show all of it.
///
/// [`Display`](fmt::Display) writes it as Python code, for a prompt to a language model.
///
/// ```
/// use isolet::{Param, ToolSpec, TypeHint};
///
/// let spec = ToolSpec::new("search")
///     .doc("Searches the corpus.")
///     .param(Param::new("query").hint(TypeHint::Str))
///     .param(Param::new("limit").hint(TypeHint::Int).default_value(10))
///     .returns(TypeHint::List(Box::new(TypeHint::Str)));
/// assert_eq!(spec.to_string(), "search(query: str, limit: int = 10) -> list[str]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) params: Vec<Param>,
    pub(crate) returns: TypeHint,
    pub(crate) style: Style,
}

/// How the guest calls a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The call returns the result.
    Plain,
    /// The call returns a coroutine.
    Async,
}

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

/// How a parameter may be passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Standard,
    KeywordOnly,
}

/// The default of a parameter that the guest does not pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Default {
    /// None: the parameter is required.
    Required,
    /// The host fills it in; the guest does not see the value.
    Unknown,
    Is(Value),
}

/// Whether the host checks an argument against its hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Checked,
    AnnotationOnly,
}

impl ToolSpec {
    /// Starts the specification of a tool without parameters.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            doc: String::new(),
            params: Vec::new(),
            returns: TypeHint::Any,
            style: Style::Plain,
        }
    }

    /// Returns the specification of `SUBMIT` for a submission with these fields.
    pub(crate) fn submit(fields: impl IntoIterator<Item = Param>) -> Result<Self, Error> {
        let doc = "Ends the run and hands these values to the host as its result.";
        let spec = Self::new("SUBMIT").doc(doc);
        let spec = fields.into_iter().fold(spec, Self::param);
        spec.validate()?;
        Ok(spec)
    }

    /// Sets the docstring.
    #[must_use]
    pub fn doc(mut self, text: impl Into<String>) -> Self {
        self.doc = text.into();
        self
    }

    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, param: Param) -> Self {
        self.params.push(param);
        self
    }

    /// Sets the annotation of the result. It is documentation only: nothing checks the result.
    #[must_use]
    pub fn returns(mut self, hint: TypeHint) -> Self {
        self.returns = hint;
        self
    }

    /// Makes the guest's function a coroutine function: the guest has to await its calls, as in
    /// `await search("cats")`.
    #[must_use]
    pub fn asynchronous(mut self) -> Self {
        self.style = Style::Async;
        self
    }

    /// Returns the tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rejects a specification that Python could not define.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let refuse = |message: String| Err(Error::new(ErrorKind::Config, message));
        if !name::is_identifier(&self.name) {
            return refuse(format!(
                "`{}` cannot be a tool's name, it is no Python identifier",
                self.name.escape_debug()
            ));
        }
        self.validate_params()
    }

    fn validate_params(&self) -> Result<(), Error> {
        let refuse = |message: String| Err(Error::new(ErrorKind::Config, message));
        let (function, params) = (&self.name, &self.params);
        let mut optional: Option<&Param> = None;
        for (at, param) in params.iter().enumerate() {
            if !name::is_identifier(&param.name) {
                return refuse(format!(
                    "`{}` cannot be a parameter of `{function}`, it is no Python identifier",
                    param.name.escape_debug()
                ));
            }
            if params[..at].iter().any(|earlier| earlier.name == param.name) {
                return refuse(format!("`{function}` has two parameters named `{}`", param.name));
            }
            if param.kind == Kind::KeywordOnly {
                continue;
            }
            if param.default != Default::Required {
                optional = Some(param);
            } else if let Some(optional) = optional {
                return refuse(format!(
                    "the parameter `{}` of `{function}` has no default, but `{}` before it has",
                    param.name, optional.name
                ));
            }
        }
        Ok(())
    }

    /// Returns the docstring, followed by the documentation of the parameters.
    pub(crate) fn docstring(&self) -> String {
        let mut text = self.doc.trim().to_owned();
        let documented = self.params.iter().filter(|param| !param.doc.is_empty());
        for (at, param) in documented.enumerate() {
            if at == 0 {
                text.push_str(if text.is_empty() { "Args:" } else { "\n\nArgs:" });
            }
            let doc = param.doc.trim().replace('\n', "\n        ");
            text.extend(["\n    ", &param.name, ": ", &doc]);
        }
        text
    }
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

    /// Makes the parameter optional, with a default that only the tool knows: an argument that the
    /// guest does not pass is missing.
    pub fn optional(mut self) -> Self {
        self.default = Default::Unknown;
        self
    }

    /// Makes the parameter keyword-only.
    pub fn keyword_only(mut self) -> Self {
        self.kind = Kind::KeywordOnly;
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
            Default::Is(value) => ("yes", value.clone()),
        };
        Value::List(vec![
            self.name.as_str().into(),
            (self.kind == Kind::KeywordOnly).into(),
            self.hint.to_value(),
            has_default.into(),
            default,
        ])
    }
}

impl fmt::Display for ToolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.style == Style::Async {
            f.write_str("async ")?;
        }
        write!(f, "{}(", self.name)?;
        let mut keyword_only = false;
        for (at, param) in self.params.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            if param.kind == Kind::KeywordOnly && !keyword_only {
                keyword_only = true;
                f.write_str("*, ")?;
            }
            write!(f, "{param}")?;
        }
        f.write_str(")")?;
        if self.returns != TypeHint::Any {
            write!(f, " -> {}", self.returns)?;
        }
        Ok(())
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let annotated = self.hint != TypeHint::Any;
        if annotated {
            write!(f, ": {}", self.hint)?;
        }
        let equals = if annotated { " = " } else { "=" };
        match &self.default {
            Default::Required => Ok(()),
            Default::Unknown => write!(f, "{equals}..."),
            Default::Is(value) => write!(f, "{equals}{value}"),
        }
    }
}
