//! Bytes as a decoder of percent-encoding or of JSON sees them, and where each of them is.

/// Decoded bytes.
pub(super) struct Seen {
    pub(super) bytes: Vec<u8>,
    /// Where each byte begins, and where the last one ends.
    starts: Vec<usize>,
    /// The escape at the end that more bytes may complete: where it begins, and how many bytes are
    /// before it.
    open: Option<Open>,
}

/// An escape that is not complete.
#[derive(Clone, Copy)]
struct Open {
    start: usize,
    seen: usize,
}

impl Seen {
    /// Returns what decoders see that is not what is there.
    pub(super) fn views(bytes: &[u8]) -> Vec<Self> {
        let mut views = Vec::new();
        if bytes.contains(&b'%') {
            views.push(Self::percent(bytes, false));
        }
        if bytes.contains(&b'+') {
            views.push(Self::percent(bytes, true));
        }
        if bytes.contains(&b'\\') {
            views.push(Self::unescaped(bytes));
        }
        views
    }

    fn new(length: usize) -> Self {
        let (bytes, starts) = (Vec::with_capacity(length), Vec::with_capacity(length + 1));
        Self { bytes, starts, open: None }
    }

    /// Returns where the byte with this index begins.
    pub(super) fn start(&self, index: usize) -> usize {
        self.starts.get(index).or(self.starts.last()).copied().unwrap_or_default()
    }

    /// Returns the bytes before an escape that is not complete.
    pub(super) fn complete(&self) -> &[u8] {
        let seen = self.open.map_or(self.bytes.len(), |open| open.seen);
        self.bytes.get(..seen).unwrap_or(&self.bytes)
    }

    /// Returns where an escape begins that is not complete.
    pub(super) fn open_start(&self) -> Option<usize> {
        self.open.map(|open| open.start)
    }

    fn push(&mut self, bytes: &[u8], start: usize) {
        self.bytes.extend_from_slice(bytes);
        self.starts.extend(bytes.iter().map(|_| start));
    }

    fn open_at(&mut self, start: usize) {
        if self.open.is_none() {
            self.open = Some(Open { start, seen: self.bytes.len() });
        }
    }

    fn ended(mut self, end: usize) -> Self {
        self.starts.push(end);
        self
    }

    /// Decodes percent-encoded bytes; `+` is a space in forms.
    pub(super) fn percent(bytes: &[u8], is_form: bool) -> Self {
        let mut seen = Self::new(bytes.len());
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let code = if *byte == b'%' { hex(bytes.get(at + 1..at + 3)) } else { None };
            if let Some(code) = code.and_then(|code| u8::try_from(code).ok()) {
                seen.push(&[code], at);
                at += 3;
                continue;
            }
            if *byte == b'%' && bytes.len() < at + 3 && is_hex(bytes.get(at + 1..)) {
                seen.open_at(at);
            }
            seen.push(&[if is_form && *byte == b'+' { b' ' } else { *byte }], at);
            at += 1;
        }
        seen.ended(bytes.len())
    }

    /// Decodes the escapes of strings of JSON.
    fn unescaped(bytes: &[u8]) -> Self {
        let mut seen = Self::new(bytes.len());
        let unit = |at: usize| hex(bytes.get(at..)?.strip_prefix(b"\\u")?.get(..4));
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if *byte == b'\\' && is_open(bytes.get(at..).unwrap_or_default()) {
                seen.open_at(at);
            }
            if let Some(first) = unit(at) {
                let second = unit(at + 6).filter(|second| (0xdc00..0xe000).contains(second));
                let (code, length) = match second {
                    Some(second) if (0xd800..0xdc00).contains(&first) => {
                        (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
                    }
                    _ => (first, 6),
                };
                let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                seen.push(letter.encode_utf8(&mut [0; 4]).as_bytes(), at);
                at += length;
                continue;
            }
            let plain = match (byte, bytes.get(at + 1)) {
                (b'\\', Some(next @ (b'"' | b'\'' | b'\\' | b'/'))) => Some(*next),
                (b'\\', Some(b'n')) => Some(b'\n'),
                (b'\\', Some(b't')) => Some(b'\t'),
                (b'\\', Some(b'r')) => Some(b'\r'),
                _ => None,
            };
            seen.push(&[plain.unwrap_or(*byte)], at);
            at += if plain.is_some() { 2 } else { 1 };
        }
        seen.ended(bytes.len())
    }
}

/// Returns `true` if more bytes may complete the escape of JSON that these bytes are.
fn is_open(bytes: &[u8]) -> bool {
    let rest = match bytes {
        [b'\\'] => return true,
        [b'\\', b'u', rest @ ..] => rest,
        _ => return false,
    };
    match rest.split_at_checked(4) {
        None => is_hex(Some(rest)),
        // The first half of a pair waits for the second.
        Some((first, second)) if (0xd800..0xdc00).contains(&hex(Some(first)).unwrap_or(0)) => {
            match second {
                [] | [b'\\'] => true,
                [b'\\', b'u', digits @ ..] => digits.len() < 4 && is_hex(Some(digits)),
                _ => false,
            }
        }
        Some(_) => false,
    }
}

fn is_hex(digits: Option<&[u8]>) -> bool {
    digits.unwrap_or_default().iter().all(u8::is_ascii_hexdigit)
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let digit = |value: u32, byte: &u8| Some(value << 4 | char::from(*byte).to_digit(16)?);
    digits?.iter().try_fold(0, digit)
}
