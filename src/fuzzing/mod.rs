//! The checks of the fuzz targets: what must hold of every input that isolet decodes. A check
//! panics when a property does not hold. Only `fuzz/` enables the feature.

mod display;
mod frame;
mod guest_path;
mod http_response;
mod journal;
mod memory;
mod net_rules;
mod output_ring;
mod package_index;
mod requirement;
mod saved;
mod tool_schema;
mod value;
mod wheel;
mod wire;

pub use display::display;
pub use frame::frame;
pub use guest_path::guest_path;
pub use http_response::http_response;
pub use journal::journal;
pub use memory::{Used, measured};
pub use net_rules::net_rules;
pub use output_ring::output_ring;
pub use package_index::package_index;
pub use requirement::requirement;
pub use saved::saved;
pub use tool_schema::tool_schema;
pub use value::value;
pub use wheel::wheel;
pub use wire::wire;
