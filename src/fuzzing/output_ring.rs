//! The memory in which a worker leaves its output: a worker that was taken over writes anything
//! there.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use super::memory::measured;
use crate::support::shared_words::SharedWords;
use crate::worker::wire::output_ring::{self, CAPACITY, Consumer, END, RECORDS, WORDS};

/// What taking output may take beside what the ring holds: the copy of the words, the pieces, and
/// their growth by doubling. A piece has at least a word.
const FACTOR: u64 = 16;

/// Fills a ring with the bytes, and takes output between positions of which the bytes tell, too.
/// What is taken is no more than the ring holds, whatever it claims.
pub fn output_ring(data: &[u8]) {
    let took = take_all(data);
    assert!(took.is_ok(), "{took:?}");
}

fn take_all(data: &[u8]) -> io::Result<()> {
    let file = output_ring::file()?;
    let memory = SharedWords::map(file.as_fd(), WORDS)?;
    let mut consumer = Consumer::map(file.as_fd())?;
    let words = || data.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    for (target, word) in memory[RECORDS..].iter().zip(words().cycle()) {
        target.store(word, Ordering::Relaxed);
    }
    for word in words() {
        // Most positions are near the last ones; the rest are anywhere.
        let end = consumer.end();
        let near = |far: u64| end.wrapping_add(far % (CAPACITY + 2)).wrapping_sub(1);
        let (next, to) = match word % 4 {
            0 => (word, word.rotate_left(32)),
            1 => (near(word >> 2), word),
            _ => (near(word >> 2), near((word >> 2) / 2)),
        };
        memory[END].store(next, Ordering::SeqCst);
        let mut pieces = VecDeque::new();
        let (taken, used) = measured(|| consumer.take(to, &mut pieces));
        let bytes: u64 = pieces.iter().map(|piece| piece.bytes.len() as u64).sum();
        assert!(bytes <= 8 * CAPACITY, "{bytes} bytes");
        assert!(used.peak as u64 <= FACTOR * 8 * CAPACITY, "{used:?}");
        if taken.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
