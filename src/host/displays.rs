//! Keeps what a run displays, up to the limits in number and bytes.

use crate::data::display::Display;
use crate::data::limits::Limits;

/// The displays of one run.
#[derive(Debug)]
pub(super) struct Displays {
    kept: Vec<Display>,
    bytes: u64,
    dropped: u64,
    max: u64,
    max_bytes: u64,
}

impl Displays {
    pub(super) fn new(limits: &Limits) -> Self {
        let (max, max_bytes) = (limits.displays(), limits.display_bytes());
        Self { kept: Vec::new(), bytes: 0, dropped: 0, max, max_bytes }
    }

    /// Keeps a display in the guest's encoding, and returns it. One that is beyond a limit, or that
    /// cannot be read, is counted only.
    pub(super) fn add(
        &mut self,
        encoded: &[u8],
        stdout_bytes: u64,
        stderr_bytes: u64,
    ) -> Option<Display> {
        let room = self.max_bytes - self.bytes;
        let is_within = (self.kept.len() as u64) < self.max && encoded.len() as u64 <= room;
        let display = is_within
            .then(|| Display::decode(encoded, decoded_bytes(room), stdout_bytes, stderr_bytes))
            .flatten()
            .filter(|display| display.size() as u64 <= room);
        match &display {
            Some(display) => {
                self.bytes += display.size() as u64;
                self.kept.push(display.clone());
            }
            None => self.dropped += 1,
        }
        display
    }

    /// Returns the displays that were kept, and the number of the others.
    pub(super) fn finish(self) -> (Vec<Display>, u64) {
        (self.kept, self.dropped)
    }
}

/// Returns how much memory a value may take that is decoded for `room` bytes of displays: a value
/// counts its list and dict, too.
fn decoded_bytes(room: u64) -> u64 {
    room.saturating_add(8 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::value::{Value, marshal};

    fn encoded(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let formats = Value::dict([("text/plain", text)]);
        marshal::encode(&Value::List(vec![false.into(), formats]), &mut bytes);
        bytes
    }

    fn sizes(displays: Displays) -> (Vec<usize>, u64) {
        let (kept, dropped) = displays.finish();
        (kept.iter().map(Display::size).collect(), dropped)
    }

    #[test]
    fn displays_beyond_the_number_or_the_bytes_are_counted_only() {
        let limits = Limits::default().max_displays(2).max_display_bytes(1000);
        let mut displays = Displays::new(&limits);
        assert!(displays.add(&encoded(&"a".repeat(1000)), 0, 0).is_none());
        assert!(displays.add(&encoded(&"a".repeat(500)), 0, 0).is_some());
        assert!(displays.add(&encoded(&"a".repeat(500)), 0, 0).is_none());
        assert!(displays.add(&encoded("a"), 0, 0).is_some());
        assert!(displays.add(&encoded("a"), 0, 0).is_none());
        assert_eq!(sizes(displays), (vec![510, 11], 3));
    }

    #[test]
    fn what_is_no_display_takes_no_room() {
        let mut displays = Displays::new(&Limits::default().max_displays(1));
        assert!(displays.add(b"", 0, 0).is_none());
        assert!(displays.add(&encoded("a"), 0, 0).is_some());
        assert_eq!(sizes(displays), (vec![11], 1));
    }
}
