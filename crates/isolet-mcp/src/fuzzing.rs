//! The checks of the fuzz targets: what must hold of every input that this crate decodes. A check
//! panics when a property does not hold. Only `fuzz/` enables the feature.

pub use crate::config::fuzzing::mcp_config;
pub use crate::server::fuzzing::mcp_server;
pub use crate::tool::fuzzing::mcp_tool;
pub use crate::upstream::fuzzing::mcp_upstream;
