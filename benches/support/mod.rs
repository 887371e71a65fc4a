//! Helpers shared by the benchmarks.

mod copies;
mod pss;

pub(crate) use self::copies::until_copy;
pub(crate) use self::pss::pss;
