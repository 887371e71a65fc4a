//! Reads ahead in files that are read sequentially, so that a guest that reads by lines or bytes
//! does not wait for the parent each time.
//!
//! Data read ahead serves a read that continues where the last one ended. It is valid only until
//! something happens that could tell the guest that the file has changed: see
//! [`ReadAhead::forget`]. The first read, and every read elsewhere or at the end of the file, asks
//! the parent.

use std::time::{Duration, Instant};

use crate::fs::FileError;
use crate::worker::wire::BULK_BYTES;

/// The maximum that is read ahead of one file, in bytes.
const MOST_BYTES: usize = 512 << 10;
/// The minimum that is read ahead of one file, in bytes.
const LEAST_BYTES: usize = 4 << 10;
/// The number of files that are read ahead.
const FILES: usize = 8;
/// The maximum age of data that the guest gets.
const MOST_AGE: Duration = Duration::from_millis(100);

/// The data read ahead for a session's files, the most recently used file last.
#[derive(Default)]
pub(super) struct ReadAhead(Vec<Window>);

/// The data read ahead of one file.
struct Window {
    file: u32,
    /// Where the last read ended.
    next: u64,
    /// The data from there on, after the first `used` bytes.
    bytes: Vec<u8>,
    used: usize,
    read_at: Instant,
    /// The minimum size of the next fetch, in bytes.
    size: usize,
}

impl ReadAhead {
    /// Discards everything, because files may have changed.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Reads from a file at an offset and fills `into`. Returns less only at the end of the file,
    /// or if reading fails. `fetch` asks the parent for a number of bytes at an offset. `now` is
    /// the current time.
    pub(super) fn read(
        &mut self,
        now: Instant,
        file: u32,
        offset: u64,
        into: &mut [u8],
        mut fetch: impl FnMut(u64, usize) -> Result<Vec<u8>, FileError>,
    ) -> Result<usize, FileError> {
        let mut window = self.take(now, file, offset);
        let mut done = window.drain(into);
        while done < into.len() {
            let needed = into.len() - done;
            let wanted = needed.max(window.size).min(BULK_BYTES);
            let bytes = match fetch(window.next, wanted) {
                Ok(bytes) => bytes,
                // The data read before is returned. The next read gets the error again.
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            };
            let is_end = bytes.len() < needed.min(wanted);
            window.fill(now, bytes, wanted);
            done += window.drain(into.get_mut(done..).unwrap_or_default());
            if is_end {
                break;
            }
        }
        if self.0.len() == FILES {
            self.0.remove(0);
        }
        self.0.push(window);
        Ok(done)
    }

    /// Takes out the window of a file that is read at an offset.
    fn take(&mut self, now: Instant, file: u32, offset: u64) -> Window {
        let known = self.0.iter().position(|window| window.file == file);
        match known.map(|known| self.0.remove(known)) {
            Some(window) if window.next == offset && window.is_recent(now) => window,
            _ => Window { file, next: offset, bytes: Vec::new(), used: 0, read_at: now, size: 0 },
        }
    }
}

impl Window {
    /// Returns `true` if the window can still be used: it is empty or was filled recently.
    fn is_recent(&self, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.read_at);
        self.used == self.bytes.len() || age <= MOST_AGE
    }

    /// Stores data and decides how much to read next time: more each time, but nothing ahead once
    /// the end of the file was reached.
    fn fill(&mut self, now: Instant, bytes: Vec<u8>, wanted: usize) {
        let is_whole = bytes.len() >= wanted;
        let more = wanted.saturating_mul(2).clamp(LEAST_BYTES, MOST_BYTES);
        self.size = if is_whole { more } else { 0 };
        (self.bytes, self.used, self.read_at) = (bytes, 0, now);
    }

    /// Moves bytes into a buffer. Returns how many.
    fn drain(&mut self, into: &mut [u8]) -> usize {
        let left = self.bytes.get(self.used..).unwrap_or_default();
        let count = left.len().min(into.len());
        if let (Some(target), Some(bytes)) = (into.get_mut(..count), left.get(..count)) {
            target.copy_from_slice(bytes);
        }
        self.used += count;
        self.next += count as u64;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file on the host, and the reads that reached it.
    struct Host {
        contents: Vec<u8>,
        fetched: Vec<(u64, usize)>,
        now: Instant,
    }

    impl Host {
        fn new(length: usize) -> Self {
            let contents = (0..=250_u8).cycle().take(length).collect();
            Self { contents, fetched: Vec::new(), now: Instant::now() }
        }

        fn read(
            &mut self,
            ahead: &mut ReadAhead,
            file: u32,
            offset: usize,
            length: usize,
        ) -> Vec<u8> {
            let mut into = vec![0; length];
            let fetch = |offset: u64, length| {
                self.fetched.push((offset, length));
                let rest =
                    usize::try_from(offset).ok().and_then(|offset| self.contents.get(offset..));
                Ok(rest.unwrap_or_default().iter().take(length).copied().collect())
            };
            let count = ahead.read(self.now, file, offset as u64, &mut into, fetch).unwrap();
            into.truncate(count);
            into
        }

        /// Reads sequentially. Returns how often the host was asked.
        fn read_through(&mut self, ahead: &mut ReadAhead, length: usize) -> usize {
            let mut offset = 0;
            loop {
                let read = self.read(ahead, 1, offset, length);
                assert!(read == self.contents[offset..offset + read.len()]);
                offset += read.len();
                if read.is_empty() {
                    assert_eq!(offset, self.contents.len());
                    return self.fetched.len();
                }
                assert!(read.len() == length || offset == self.contents.len());
            }
        }
    }

    #[test]
    fn a_file_that_is_read_from_front_to_back_is_asked_for_rarely() {
        for length in [100, 8192, 100_000] {
            let asked = Host::new(13_000_000).read_through(&mut ReadAhead::default(), length);
            assert!(asked < 40, "{length}: {asked}");
        }
        let mut host = Host::new(5_000_000);
        assert!(host.read(&mut ReadAhead::default(), 1, 0, 6_000_000) == host.contents);
        assert_eq!(host.fetched.len(), 5);
    }

    #[test]
    fn a_read_elsewhere_asks_for_no_more_than_it_needs() {
        let (mut host, mut ahead) = (Host::new(1_000_000), ReadAhead::default());
        for offset in [0, 5000, 100, 100, 999_990, 300] {
            let read = host.read(&mut ahead, 1, offset, 20);
            assert_eq!(read, host.contents[offset..(offset + 20).min(1_000_000)]);
        }
        let lengths: Vec<_> = host.fetched.iter().map(|(_, length)| *length).collect();
        assert_eq!(lengths, [20; 6]);
    }

    #[test]
    fn what_the_host_appends_is_seen_by_the_next_read_at_the_end() {
        let (mut host, mut ahead) = (Host::new(10), ReadAhead::default());
        assert_eq!(host.read(&mut ahead, 1, 0, 100).len(), 10);
        for round in 0..100 {
            assert_eq!(host.read(&mut ahead, 1, 10 + round, 100), b"");
            host.contents.push(b'x');
            assert_eq!(host.read(&mut ahead, 1, 10 + round, 100), b"x");
        }
    }

    #[test]
    fn what_is_forgotten_is_asked_for_again() {
        let (mut host, mut ahead) = (Host::new(100_000), ReadAhead::default());
        host.read(&mut ahead, 1, 0, 1000);
        host.read(&mut ahead, 1, 1000, 1000);
        host.contents.fill(b'x');
        ahead.forget();
        assert_eq!(host.read(&mut ahead, 1, 2000, 1000), [b'x'; 1000]);
        // Nor is it used beyond the maximum age.
        host.read(&mut ahead, 1, 3000, 1000);
        host.contents.fill(b'y');
        host.now += 2 * MOST_AGE;
        assert_eq!(host.read(&mut ahead, 1, 4000, 1000), [b'y'; 1000]);
    }

    #[test]
    fn many_files_are_read_side_by_side_and_each_has_its_own_bytes() {
        let mut ahead = ReadAhead::default();
        let mut hosts: Vec<_> = (0..20).map(|file| Host::new(10_000 + file)).collect();
        for (file, host) in hosts.iter_mut().enumerate() {
            host.contents.rotate_left(file);
        }
        for offset in (0..10_000).step_by(1000) {
            for (file, host) in (0..).zip(&mut hosts) {
                let read = host.read(&mut ahead, file, offset, 1000);
                assert_eq!(read, host.contents[offset..offset + 1000]);
            }
        }
        assert!(ahead.0.len() <= FILES);
    }

    #[test]
    fn an_error_comes_after_what_was_read_before() {
        let mut ahead = ReadAhead::default();
        let (now, mut into) = (Instant::now(), [0; 100]);
        let mut answers = vec![Err(FileError::Io), Ok(vec![1; 50]), Ok(vec![1; 10])];
        let mut fetch = |_, _| answers.pop().unwrap();
        assert_eq!(ahead.read(now, 1, 0, &mut into[..10], &mut fetch), Ok(10));
        assert_eq!(ahead.read(now, 1, 10, &mut into[..20], &mut fetch), Ok(20));
        assert_eq!(ahead.read(now, 1, 30, &mut into, &mut fetch), Ok(30));
        let failed = ahead.read(now, 1, 60, &mut into, |_, _| Err(FileError::Io));
        assert_eq!(failed, Err(FileError::Io));
    }
}
