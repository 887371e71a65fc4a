//! The cached facts about a server, available without asking it: its tools, and the shapes of their
//! results. Kept on disk, so that listing tools starts no server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::support::store;
use crate::tool::definition::Definition;
use crate::tool::pins::{PinDiff, PinFile};
use crate::tool::shape::Shape;
use isolet::Value;
use isolet::internals::lock;

/// Changes with the meaning of the file.
const FORMAT: u32 = 2;

/// The maximum number of tools whose results are remembered.
const MAX_SHAPES: usize = 1_000;

/// The protocol of a server: the older one with a handshake, or the newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Catalogue {
    format: u32,
    pub(crate) era: Era,
    /// Sorted by name, each name once.
    pub(crate) tools: Arc<Vec<Definition>>,
    #[serde(default)]
    pub(crate) shapes: BTreeMap<String, Shape>,
}

/// The catalogue of one server, in memory and on disk.
pub(crate) struct Shelf {
    path: Option<PathBuf>,
    pins: Option<PinFile>,
    known: Mutex<Known>,
    /// Held while the file is written, so that the last write has the latest content.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Known {
    was_read: bool,
    catalogue: Option<Catalogue>,
    diff: Arc<PinDiff>,
    version: u64,
}

impl Shelf {
    pub(crate) fn new(path: Option<PathBuf>, pins: Option<PinFile>) -> Self {
        Self { path, pins, known: Mutex::default(), writing: Mutex::default() }
    }

    /// Returns the catalogue, if the server was listed before. The first call reads the file.
    pub(crate) fn get(&self) -> Option<Catalogue> {
        let mut known = lock(&self.known);
        if !known.was_read {
            known.was_read = true;
            let read = self.path.as_deref().and_then(store::read::<Catalogue>);
            if let Some(catalogue) = read.filter(|read| read.format == FORMAT) {
                known.diff = Arc::new(self.compare(&catalogue.tools));
                known.catalogue = Some(catalogue);
            }
        }
        known.catalogue.clone()
    }

    /// Returns how often the list has changed.
    pub(crate) fn version(&self) -> u64 {
        lock(&self.known).version
    }

    /// Takes over a new list. Returns `true` if it differs from the last one.
    pub(crate) fn put(&self, era: Era, tools: Vec<Definition>) -> bool {
        let old = self.get();
        let diff = Arc::new(self.compare(&tools));
        let mut known = lock(&self.known);
        known.diff = diff;
        let is_new = old.as_ref().is_none_or(|old| *old.tools != tools);
        if !is_new && old.as_ref().is_some_and(|old| old.era == era) {
            return false;
        }
        let mut shapes = old.map(|old| old.shapes).unwrap_or_default();
        shapes.retain(|name, _| tools.iter().any(|tool| tool.name == *name));
        let tools = Arc::new(tools);
        known.catalogue = Some(Catalogue { format: FORMAT, era, tools, shapes });
        known.version += u64::from(is_new);
        drop(known);
        self.write();
        is_new
    }

    /// Remembers the shape of a result. Returns `true` if the file has to be written.
    pub(crate) fn saw(&self, tool: &str, result: &Value) -> bool {
        let shape = Shape::of(result);
        let mut known = lock(&self.known);
        let Some(catalogue) = &mut known.catalogue else { return false };
        let shapes = &mut catalogue.shapes;
        let merged = match shapes.get(tool) {
            Some(seen) => seen.merged(&shape),
            None if shapes.len() >= MAX_SHAPES => return false,
            None => shape,
        };
        let is_new = shapes.get(tool) != Some(&merged);
        if is_new {
            shapes.insert(tool.to_owned(), merged);
        }
        is_new
    }

    /// Writes the file. Blocks. Without the file, the next start only takes longer.
    pub(crate) fn write(&self) {
        let _writing = lock(&self.writing);
        let catalogue = lock(&self.known).catalogue.clone();
        if let (Some(path), Some(catalogue)) = (&self.path, catalogue) {
            let _ = store::write(path, &catalogue);
        }
    }

    /// Returns the changes since the tools were accepted.
    pub(crate) fn diff(&self) -> Arc<PinDiff> {
        Arc::clone(&lock(&self.known).diff)
    }

    /// Accepts the tools as they are now.
    pub(crate) fn accept(&self) -> std::io::Result<()> {
        let tools = lock(&self.known).catalogue.as_ref().map(|known| Arc::clone(&known.tools));
        if let (Some(pins), Some(tools)) = (&self.pins, tools) {
            pins.accept(&tools)?;
        }
        lock(&self.known).diff = Arc::default();
        Ok(())
    }

    /// Compares tools with the pins. If these cannot be written, nothing is trusted.
    fn compare(&self, tools: &[Definition]) -> PinDiff {
        let Some(pins) = &self.pins else { return PinDiff::default() };
        pins.check(tools).unwrap_or_else(|_| {
            let added = tools.iter().map(|tool| tool.name.clone()).collect();
            PinDiff { added, ..PinDiff::default() }
        })
    }
}
