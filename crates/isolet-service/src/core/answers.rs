//! Descriptions of a session's variables, packages, files and confinement, as all wires send them.

use std::collections::BTreeMap;

use isolet::{FileEntry, Isolation, IsolationReport, Layer, LoadedPackage};
use serde::Serialize;

/// A variable of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Variable {
    pub name: String,
    #[serde(rename = "type")]
    pub type_name: String,
    pub repr: String,
}

impl From<isolet::Variable> for Variable {
    fn from(variable: isolet::Variable) -> Self {
        Self { name: variable.name, type_name: variable.type_name, repr: variable.repr }
    }
}

/// A package that a session has loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Package {
    pub name: String,
    pub version: String,
}

impl From<LoadedPackage> for Package {
    fn from(package: LoadedPackage) -> Self {
        Self { name: package.name, version: package.version }
    }
}

/// A file or directory of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    name: String,
    is_dir: bool,
    size: u64,
}

impl From<FileEntry> for Entry {
    fn from(entry: FileEntry) -> Self {
        Self { name: entry.name, is_dir: entry.is_directory, size: entry.size }
    }
}

/// Where a run was stopped that is looked back at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoppedAt {
    function: String,
    line: u64,
    /// The names of the function's local variables.
    names: Vec<String>,
}

impl From<isolet::StoppedAt> for StoppedAt {
    fn from(stopped: isolet::StoppedAt) -> Self {
        Self { function: stopped.function, line: stopped.line, names: stopped.names }
    }
}

/// How the guest of a session is confined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Confinement {
    isolation: Isolation,
    /// Whether each layer is in force.
    layers: BTreeMap<Layer, bool>,
}

impl From<&IsolationReport> for Confinement {
    fn from(report: &IsolationReport) -> Self {
        let layers = report.layers().map(|(layer, _)| (layer, report.is_enforced(layer)));
        Self { isolation: report.isolation(), layers: layers.collect() }
    }
}
