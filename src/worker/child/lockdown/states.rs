//! Records the state of each layer during a lockdown.

use std::collections::BTreeMap;
use std::collections::btree_map::IntoIter;

use crate::data::isolation::{Layer, LayerState};

/// The states recorded so far.
#[derive(Debug, Default)]
pub(super) struct States(BTreeMap<Layer, LayerState>);

impl States {
    /// Records that a layer is in force.
    pub(super) fn enforced(&mut self, layer: Layer, detail: impl Into<String>) {
        self.0.insert(layer, LayerState::Enforced(detail.into()));
    }

    /// Records that a layer is not in force, and the reason.
    pub(super) fn missing(&mut self, layer: Layer, reason: impl Into<String>) {
        self.0.insert(layer, LayerState::Missing(reason.into()));
    }

    /// Returns `true` if a layer was recorded as in force.
    pub(super) fn is_enforced(&self, layer: Layer) -> bool {
        self.0.get(&layer).is_some_and(LayerState::is_enforced)
    }
}

impl IntoIterator for States {
    type Item = (Layer, LayerState);
    type IntoIter = IntoIter<Layer, LayerState>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
