//! The checks of the fuzz targets: what must hold of every input that isolet decodes. A check
//! panics when a property does not hold. Only `fuzz/` enables the feature.

mod frame;
mod guest_path;
mod memory;
mod net_rules;
mod output_ring;
mod requirement;
mod saved;
mod value;
mod wheel;
mod wire;

pub use frame::frame;
pub use guest_path::guest_path;
pub use net_rules::net_rules;
pub use output_ring::output_ring;
pub use requirement::requirement;
pub use saved::saved;
pub use value::value;
pub use wheel::wheel;
pub use wire::wire;
