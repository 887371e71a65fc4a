//! The checks of the fuzz targets: what must hold of every input that this crate decodes. A check
//! panics when a property does not hold. Only `fuzz/` enables the feature.

pub use crate::http::fuzzing::http_body;
pub use crate::stdio::fuzzing::serve_frame;
