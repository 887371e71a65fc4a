//! Keeps the parts that did not fit into results, long output and pictures, for clients that
//! request them by address.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes that are kept for a session. The oldest outputs are removed first.
const KEPT_BYTES: usize = 32 << 20;

/// The start of all addresses.
const SCHEME: &str = "isolet://";

/// The long outputs of a session.
#[derive(Default)]
pub(super) struct Outputs(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    last: u64,
    bytes: usize,
    outputs: VecDeque<Output>,
}

/// Something that a run has put out.
#[derive(Clone)]
pub(super) struct Output {
    number: u64,
    /// The kind of output, such as `stdout`.
    pub(super) name: String,
    pub(super) format: String,
    pub(super) data: Data,
}

#[derive(Clone)]
pub(super) enum Data {
    Text(String),
    Bytes(Vec<u8>),
}

impl Data {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

impl Output {
    /// Returns the address, for the session with this handle.
    pub(super) fn address(&self, handle: &str) -> String {
        format!("{SCHEME}{handle}/{}/{}", self.number, self.name)
    }
}

impl Outputs {
    /// The outputs of a session that has slept. Those from before are forgotten, and their
    /// addresses are not given to others.
    pub(super) fn of_woken() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let last = u64::try_from(since.as_millis()).unwrap_or_default();
        Self(Mutex::new(Kept { last, ..Kept::default() }))
    }

    /// Keeps an output, and returns it with its number.
    pub(super) fn keep(&self, name: &str, format: &str, data: Data) -> Output {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let (name, format) = (name.to_owned(), format.to_owned());
        let output = Output { number: kept.last, name, format, data };
        kept.bytes += output.data.len();
        kept.outputs.push_back(output.clone());
        while kept.bytes > KEPT_BYTES && kept.outputs.len() > 1 {
            let oldest = kept.outputs.pop_front();
            kept.bytes -= oldest.map_or(0, |oldest| oldest.data.len());
        }
        output
    }

    /// Returns the output of a number, if it is still kept.
    pub(super) fn get(&self, number: u64) -> Option<Output> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.outputs.iter().find(|output| output.number == number).cloned()
    }

    /// Returns all that is kept.
    pub(super) fn all(&self) -> Vec<Output> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.outputs.iter().cloned().collect()
    }
}

/// Reads an address: the session's handle, and the number of the output.
pub(super) fn read_address(address: &str) -> Option<(&str, u64)> {
    let mut parts = address.strip_prefix(SCHEME)?.split('/');
    let handle = parts.next()?;
    let number = parts.next()?.parse().ok()?;
    Some((handle, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_found_by_its_address_until_newer_ones_need_its_place() {
        let outputs = Outputs::default();
        let first = outputs.keep("stdout", "text/plain", Data::Text("x".repeat(20 << 20)));
        let address = first.address("s_1");
        assert_eq!(address, "isolet://s_1/1/stdout");
        assert_eq!(read_address(&address), Some(("s_1", 1)));
        assert!(outputs.get(1).is_some());
        outputs.keep("picture", "image/png", Data::Bytes(vec![0; 40 << 20]));
        assert!(outputs.get(1).is_none() && outputs.get(2).is_some());
        assert_eq!(outputs.all().len(), 1);
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in ["", "file:///etc/passwd", "isolet://", "isolet://s_1", "isolet://s_1/x/y"] {
            assert_eq!(read_address(text), None, "{text}");
        }
    }
}
