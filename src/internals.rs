//! What isolet's other crates need of the library. Not a part of its API: any version may change
//! it.

pub use crate::api::init::start_worker_ahead;
pub use crate::data::invisible::is_invisible;
pub use crate::data::redact::Redactor;
pub use crate::data::tool::name::is_identifier;
pub use crate::data::value::{encoded_len, plain};
pub use crate::host::tools::no_session::no_session;
pub use crate::host::tools::testing;
#[cfg(feature = "fetch")]
pub use crate::support::asset_fetch::{fetch_missing, fetch_options, is_for_a_missing_file};
pub use crate::support::cache_dir::{cache_dir, data_dir, is_named};
pub use crate::support::control_groups;
pub use crate::support::lock::lock;
pub use crate::support::size::shown_bytes;

/// A module of the guest that returns values.
pub const RETURNS: &str = include_str!("../js/py/returns.py");
/// A module of the guest that describes exceptions.
pub const FAILURES: &str = include_str!("../js/py/failures.py");
