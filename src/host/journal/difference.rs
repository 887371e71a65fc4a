//! Says how a sandbox differs from the one that a session was recorded in.

use crate::data::value::marshal;
use crate::protocol::codec::CommandFrame;

/// The maximum memory that a command takes which begins a session, in bytes.
const MOST_START_BYTES: u64 = 256 << 20;

/// Returns what differs between two commands that begin a session, in words, if anything does.
pub(crate) fn difference(recorded: &[u8], own: &[u8]) -> Option<&'static str> {
    if recorded == own {
        return None;
    }
    let decode = |frame: &[u8]| {
        let mut frame = CommandFrame::new(frame.to_vec());
        let bytes = frame.take(usize::try_from(frame.length()).ok()?)?.to_vec();
        marshal::decode_within(&bytes, MOST_START_BYTES).ok()
    };
    let (recorded, own) = (decode(recorded)?, decode(own)?);
    let fields = [
        ("env", "environment variables"),
        ("mounts", "mounts"),
        ("packages", "packages"),
        ("terminal", "terminal"),
        ("tools", "tools"),
        ("submit", "functions to submit"),
        ("modules", "modules of tools"),
    ];
    let differs = |name: &str| recorded.get(name) != own.get(name);
    let found = fields.into_iter().find(|(name, _)| differs(name));
    Some(found.map_or("settings", |(_, words)| words))
}
