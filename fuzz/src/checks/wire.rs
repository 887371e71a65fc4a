//! Frames of a worker, as its parent reads them: a worker that was taken over sends anything.

use crate::memory::measured;
use crate::wire::{self, FromWorker, ToWorker};

/// The longest frame that is taken here.
const LIMIT: u64 = 1 << 16;
/// What reading a frame may take beside the frame itself: the buffer grows by doubling.
const RECEIVED_FACTOR: usize = 4;
/// How many times the length of its frame a message may take: a report of layers is a tree of strings.
const DECODED_FACTOR: usize = 256;
const SPARE: usize = 4096;
/// What a list that claims to be long has reserved for it: serde takes at most 1 MiB on trust.
const CLAIMED: usize = 4 << 20;

/// Reads the stream frame by frame, as the parent does, and each frame as a message in either direction. What
/// is read encodes to a frame that reads as the same again; memory is taken for what has come, not for
/// what a frame claims.
pub fn wire(data: &[u8]) {
    let mut stream = data;
    let mut content = Vec::new();
    loop {
        let left = stream.len();
        let (received, used) = measured(|| wire::receive(&mut stream, &mut content, LIMIT));
        assert!(used.peak <= RECEIVED_FACTOR * left + SPARE, "{left} bytes took {used:?}");
        match received {
            Ok(true) => check(&content),
            Ok(false) => return assert!(stream.is_empty()),
            Err(_) => return,
        }
        assert!(content.len() as u64 <= LIMIT && stream.len() + content.len() + 8 == left);
    }
}

fn check(content: &[u8]) {
    let (decoded, used) = measured(|| wire::decode::<FromWorker<'_>>(content));
    assert!(
        used.peak <= DECODED_FACTOR * content.len() + CLAIMED,
        "{} took {used:?}",
        content.len()
    );
    if let Ok(message) = decoded {
        let frame = wire::encode(&message).unwrap_or_default();
        let again = wire::decode::<FromWorker<'_>>(&frame[8..]);
        assert_eq!(format!("{:?}", again.ok()), format!("{:?}", Some(message)));
    }
    // Only the parent sends these; that they are read at all is as good a check of their types.
    if let Ok(message) = wire::decode::<ToWorker>(content) {
        let frame = wire::encode(&message).unwrap_or_default();
        let again = wire::decode::<ToWorker>(&frame[8..]);
        assert_eq!(format!("{:?}", again.ok()), format!("{:?}", Some(message)));
    }
}
