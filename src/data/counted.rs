//! Reads postcard that anyone may have written: the length of a list is compared with its limit
//! before the list is read, so that few bytes do not become much memory.

use serde::Deserialize;

/// Bytes that are read from their beginning.
pub(crate) struct Counted<'a> {
    rest: &'a [u8],
    /// How many elements the shared lists may have together.
    limit: u64,
    taken: u64,
}

impl<'a> Counted<'a> {
    /// Reads these bytes. The [shared lists](Self::shared_list) may have so many elements together.
    pub(crate) fn new(bytes: &'a [u8], limit: u64) -> Self {
        Self { rest: bytes, limit, taken: 0 }
    }

    /// Returns what is left to be read, in bytes.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Reads a value. A type that is `Copy` has no list of its own; it may borrow a text.
    pub(crate) fn value<T: Copy + Deserialize<'a>>(&mut self) -> Result<T, String> {
        let (value, rest) = postcard::take_from_bytes(self.rest).map_err(|e| e.to_string())?;
        self.rest = rest;
        Ok(value)
    }

    /// Reads a text of at most so many bytes.
    pub(crate) fn text(&mut self, what: &str, max_bytes: usize) -> Result<String, String> {
        let text: &str = self.value()?;
        within_bytes(what, text, max_bytes)?;
        Ok(text.to_owned())
    }

    /// Reads a list of at most so many elements.
    pub(crate) fn list<T>(
        &mut self,
        what: &str,
        max: u64,
        read: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let count = self.value()?;
        within(what, count, max)?;
        self.elements(count, read)
    }

    /// Reads a list whose elements count together with those of all such lists.
    pub(crate) fn shared_list<T>(
        &mut self,
        what: &str,
        read: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let count: u64 = self.value()?;
        let taken = self.taken.saturating_add(count);
        within(what, taken, self.limit)?;
        self.taken = taken;
        self.elements(count, read)
    }

    fn elements<T>(
        &mut self,
        count: u64,
        read: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        // Each takes a byte or more.
        let room = usize::try_from(count).ok().filter(|count| *count <= self.rest.len());
        let Some(count) = room else {
            return Err(format!("a list of {count} elements in {} bytes", self.rest.len()));
        };
        let mut read = read;
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }
}

/// Fails if there are more than so many.
pub(crate) fn within(what: &str, needed: u64, limit: u64) -> Result<(), String> {
    if needed > limit {
        return Err(format!("{what}: limit {limit}, needed {needed}"));
    }
    Ok(())
}

/// Fails if a text has more than so many bytes.
pub(crate) fn within_bytes(what: &str, text: &str, limit: usize) -> Result<(), String> {
    if text.len() > limit {
        return Err(format!("{what}: limit {limit} bytes, needed {}", text.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a length, as that of a list.
    fn length(count: u64) -> Vec<u8> {
        postcard::to_stdvec(&count).unwrap()
    }

    #[test]
    fn a_list_is_refused_by_its_length_before_anything_of_it_is_read() {
        let unread = |_: &mut Counted<'_>| -> Result<(), String> { panic!("it was read") };
        for count in [11, 1 << 40, u64::MAX] {
            let bytes = [length(count), vec![0; 1 << 10]].concat();
            let mut counted = Counted::new(&bytes, 10);
            let expected = format!("names: limit 10, needed {count}");
            assert_eq!(counted.list("names", 10, unread).unwrap_err(), expected);
            let mut counted = Counted::new(&bytes, 10);
            assert_eq!(counted.shared_list("names", unread).unwrap_err(), expected);
        }
        let bytes = [length(1 << 40), vec![0; 7]].concat();
        let error = Counted::new(&bytes, 0).list("names", u64::MAX, unread).unwrap_err();
        assert_eq!(error, "a list of 1099511627776 elements in 7 bytes");
    }

    #[test]
    fn lists_within_lists_count_together() {
        let bytes = postcard::to_stdvec(&vec![vec![1u64; 3]; 4]).unwrap();
        let read = |limit| {
            Counted::new(&bytes, limit)
                .shared_list("lists", |inner| inner.shared_list("numbers", Counted::value::<u64>))
        };
        assert_eq!(read(16).unwrap(), vec![vec![1; 3]; 4]);
        assert_eq!(read(15).unwrap_err(), "numbers: limit 15, needed 16");
    }

    #[test]
    fn a_text_has_a_limit_and_bytes_that_are_left_are_seen() {
        let bytes = postcard::to_stdvec(&("héllo", 1u8)).unwrap();
        let mut counted = Counted::new(&bytes, 0);
        assert_eq!(counted.text("a name", 6).unwrap(), "héllo");
        assert_eq!(counted.left(), 1);
        let error = Counted::new(&bytes, 0).text("a name", 5).unwrap_err();
        assert_eq!(error, "a name: limit 5 bytes, needed 6");
    }
}
