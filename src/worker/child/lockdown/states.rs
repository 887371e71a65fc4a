//! What became of each layer, as a lockdown goes along.

use std::collections::BTreeMap;
use std::collections::btree_map::IntoIter;

use crate::data::isolation::{Layer, LayerState};

/// The states so far.
#[derive(Debug, Default)]
pub(super) struct States(BTreeMap<Layer, LayerState>);

impl States {
    /// Records that a layer is in force.
    pub(super) fn enforced(&mut self, layer: Layer, detail: impl Into<String>) {
        self.0.insert(layer, LayerState::Enforced(detail.into()));
    }

    /// Records that a layer is not in force, and why.
    pub(super) fn missing(&mut self, layer: Layer, reason: impl Into<String>) {
        self.0.insert(layer, LayerState::Missing(reason.into()));
    }

    /// Returns whether a layer was recorded as in force.
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
