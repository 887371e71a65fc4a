//! What `isolet doctor --json` prints.

use isolet::{IsolationReport, SystemCall};
use isolet_pyodide_assets::Verification;
use serde::Serialize;

use super::capacity::Capacity;

/// What was found. The names of the fields are part of the contract.
#[derive(Default, Serialize)]
pub(super) struct Report {
    /// Set if everything that was asked for is there.
    pub(super) ok: bool,
    /// Why the rest is not known.
    pub(super) error: Option<String>,
    pub(super) isolet: &'static str,
    pub(super) v8: &'static str,
    pub(super) pyodide: &'static str,
    /// The version that a session has named.
    pub(super) python: Option<String>,
    pub(super) assets: Assets,
    /// What of this machine may keep a session from starting.
    pub(super) obstacles: Vec<String>,
    /// The file of the memory image, if it is in one.
    pub(super) image: Option<String>,
    pub(super) isolation: Option<Confinement>,
    /// With `--verbose`: the system calls that do not kill a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_calls: Option<Vec<Call>>,
    /// With `--serve`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) capacity: Option<Capacity>,
}

#[derive(Default, Serialize)]
pub(super) struct Assets {
    pub(super) directory: String,
    pub(super) files: Vec<AssetFile>,
}

#[derive(Serialize)]
pub(super) struct AssetFile {
    name: String,
    /// What is wrong with it.
    problem: Option<String>,
}

impl Assets {
    pub(super) fn new(directory: String, verification: &Verification) -> Self {
        let file = |file: &isolet_pyodide_assets::FileReport| AssetFile {
            name: file.name().to_owned(),
            problem: file.problem().map(ToString::to_string),
        };
        Self { directory, files: verification.files().iter().map(file).collect() }
    }
}

/// Where the session ran, and what confined it.
#[derive(Serialize)]
pub(super) struct Confinement {
    /// `process` or `thread`.
    kind: &'static str,
    layers: Vec<LayerInForce>,
}

#[derive(Serialize)]
struct LayerInForce {
    layer: &'static str,
    in_force: bool,
    /// Details, or why it is not in force.
    details: String,
}

impl Confinement {
    pub(super) fn new(report: &IsolationReport) -> Self {
        let layers = report.layers().map(|(layer, state)| LayerInForce {
            layer: layer.name(),
            in_force: state.is_enforced(),
            details: state.text().to_owned(),
        });
        Self { kind: report.isolation().name(), layers: layers.collect() }
    }
}

#[derive(Serialize)]
pub(super) struct Call {
    name: &'static str,
    rule: &'static str,
    reason: &'static str,
}

impl From<&SystemCall> for Call {
    fn from(call: &SystemCall) -> Self {
        Self { name: call.name, rule: call.rule.name(), reason: call.reason }
    }
}
