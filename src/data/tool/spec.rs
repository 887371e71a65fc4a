//! The specification of a tool: its name, parameters and documentation.

use std::fmt;

use super::hint::TypeHint;
use super::name;
use super::param::{Default, Kind, Param};
use crate::data::error::{Error, ErrorKind};

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

    /// The usual name of the function that submits.
    pub(crate) const SUBMIT: &str = "SUBMIT";

    /// Returns the specification of a function that submits these fields.
    pub(crate) fn submit(
        name: impl Into<String>,
        fields: impl IntoIterator<Item = Param>,
    ) -> Result<Self, Error> {
        let doc = "Ends the run and hands these values to the host as its result.";
        let spec = Self::new(name).doc(doc);
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

    /// Checks that Python can define the function, as a sandbox does when it is built.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if a name is not one of Python, or the parameters are not in an order
    /// that Python has.
    pub fn validate(&self) -> Result<(), Error> {
        let refuse = |message: String| Err(Error::new(ErrorKind::Config, message));
        if !name::is_identifier(&self.name) {
            return refuse(format!(
                "`{}` cannot be a tool's name, it is no Python identifier",
                self.name.escape_debug()
            ));
        }
        self.validate_params()
    }

    pub(super) fn validate_params(&self) -> Result<(), Error> {
        let refuse = |message: String| Err(Error::new(ErrorKind::Config, message));
        let (function, params) = (&self.name, &self.params);
        let mut optional: Option<&Param> = None;
        for (at, param) in params.iter().enumerate() {
            let (name, kind) = (&param.name, param.kind);
            if !name::is_identifier(name) {
                return refuse(format!(
                    "`{}` cannot be a parameter of `{function}`, it is no Python identifier",
                    name.escape_debug()
                ));
            }
            if params[..at].iter().any(|earlier| earlier.name == *name) {
                return refuse(format!("`{function}` has two parameters named `{name}`"));
            }
            if let Some(earlier) = params[..at].iter().find(|earlier| earlier.kind > kind) {
                return refuse(format!(
                    "the {kind} parameter `{name}` of `{function}` comes after the {} parameter \
                     `{}`, it has to come before it",
                    earlier.kind, earlier.name
                ));
            }
            if kind.takes_many() {
                if let Some(earlier) = params[..at].iter().find(|earlier| earlier.kind == kind) {
                    return refuse(format!(
                        "`{function}` has two {kind} parameters, `{}` and `{name}`, it can have \
                         one",
                        earlier.name
                    ));
                }
                if param.default != Default::Required {
                    return refuse(format!(
                        "the {kind} parameter `{name}` of `{function}` has a default, it cannot \
                         have one"
                    ));
                }
            }
            if !kind.is_positional() {
                continue;
            }
            if param.default != Default::Required {
                optional = Some(param);
            } else if let Some(optional) = optional {
                return refuse(format!(
                    "the parameter `{name}` of `{function}` has no default, but `{}` before it has",
                    optional.name
                ));
            }
        }
        Ok(())
    }

    /// Returns the signature with another name, such as one within a module.
    pub(crate) fn signature<'a>(&'a self, name: &'a str) -> Signature<'a> {
        Signature { spec: self, name }
    }

    /// Returns the docstring, followed by the documentation of the parameters.
    #[must_use]
    pub fn docstring(&self) -> String {
        let mut text = self.doc.trim().to_owned();
        let documented = self.params.iter().filter(|param| !param.doc.is_empty());
        for (at, param) in documented.enumerate() {
            if at == 0 {
                text.push_str(if text.is_empty() { "Args:" } else { "\n\nArgs:" });
            }
            let doc = param.doc.trim().replace('\n', "\n        ");
            text.extend(["\n    ", param.kind.stars(), &param.name, ": ", &doc]);
        }
        text
    }
}

/// A tool's signature as Python code, with another name.
pub(crate) struct Signature<'a> {
    spec: &'a ToolSpec,
    name: &'a str,
}

impl fmt::Display for ToolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signature(&self.name).fmt(f)
    }
}

impl fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.spec;
        if spec.style == Style::Async {
            f.write_str("async ")?;
        }
        write!(f, "{}(", self.name)?;
        let mut before: Option<Kind> = None;
        for param in &spec.params {
            if before.is_some() {
                f.write_str(", ")?;
            }
            let ends_positional_only = before == Some(Kind::PositionalOnly);
            if ends_positional_only && param.kind != Kind::PositionalOnly {
                f.write_str("/, ")?;
            }
            let ends_positional = before.is_none_or(|kind| kind < Kind::VarPositional);
            if ends_positional && param.kind == Kind::KeywordOnly {
                f.write_str("*, ")?;
            }
            write!(f, "{param}")?;
            before = Some(param.kind);
        }
        if before == Some(Kind::PositionalOnly) {
            f.write_str(", /")?;
        }
        f.write_str(")")?;
        if spec.returns != TypeHint::Any {
            write!(f, " -> {}", spec.returns)?;
        }
        Ok(())
    }
}
