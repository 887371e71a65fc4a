//! What isolet's other crates need of the library. Not a part of its API: any version may change
//! it.

pub use crate::data::invisible::is_invisible;
pub use crate::data::tool::name::is_identifier;
pub use crate::data::value::encoded_len;
pub use crate::host::tools::no_session::no_session;
pub use crate::host::tools::testing;
pub use crate::support::cache_dir::{cache_dir, data_dir};
#[cfg(target_os = "linux")]
pub use crate::support::control_groups;
pub use crate::support::lock::lock;

/// A module of the guest that returns values.
pub const RETURNS: &str = include_str!("../js/py/returns.py");
/// A module of the guest that describes exceptions.
pub const FAILURES: &str = include_str!("../js/py/failures.py");
