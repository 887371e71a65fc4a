//! The path parameters of native routes.

use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct SessionPath {
    /// The session's id.
    pub(super) id: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct VariablePath {
    /// The session's id.
    pub(super) id: String,
    /// The variable's name.
    pub(super) name: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct FilePath {
    /// The session's id.
    pub(super) id: String,
    /// The file's path, without the first slash.
    pub(super) path: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct CallPath {
    /// The session's id.
    pub(super) id: String,
    /// The number of the tool call.
    pub(super) call: u64,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RunPath {
    /// The session's id.
    pub(super) id: String,
    /// The number of the run in its session.
    pub(super) run: u64,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct SnapshotPath {
    /// The snapshot's id.
    pub(super) id: String,
}
