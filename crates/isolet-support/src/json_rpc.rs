//! Messages of JSON-RPC as peers really send them. Even an unreadable message gets an answer: this
//! module finds the request that it belongs to.

use std::io;
use std::sync::Arc;

use rmcp::model::RequestId;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// The bytes that are kept of both ends of a line that is too long, to find the number of its
/// request.
const ENDS: usize = 256;

/// The size of the buffer that stays between messages.
const USUAL_BYTES: usize = 64 * 1024;

/// Some editors and shells put it before a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads lines of a bounded length.
pub struct Lines<R> {
    read: BufReader<R>,
    // It survives a `next` that is dropped halfway.
    assembly: Assembly,
}

/// Puts lines of a bounded length together.
pub struct Assembly {
    line: Vec<u8>,
    end: Option<Vec<u8>>,
    bytes: usize,
    max_bytes: usize,
}

/// A line, without its end.
pub enum Line {
    Whole(Vec<u8>),
    /// The first and the last bytes of a line that is too long, and how many it has.
    TooLong(Vec<u8>, Vec<u8>, usize),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(read: R, max_bytes: usize) -> Self {
        let read = BufReader::with_capacity(USUAL_BYTES, read);
        Self { read, assembly: Assembly::new(max_bytes) }
    }

    /// Reads a line. Returns `None` at the end of the stream. The last line need not end with a
    /// newline.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(self.assembly.rest());
            }
            let (consumed, line) = self.assembly.push(available);
            self.read.consume(consumed);
            if line.is_some() {
                return Ok(line);
            }
        }
    }
}

impl Assembly {
    pub fn new(max_bytes: usize) -> Self {
        Self { line: Vec::new(), end: None, bytes: 0, max_bytes }
    }

    /// Takes the next line from the bytes that have arrived. Returns how many bytes it took, and
    /// the line that they end.
    pub fn push(&mut self, available: &[u8]) -> (usize, Option<Line>) {
        let newline = available.iter().position(|byte| *byte == b'\n');
        let taken = &available[..newline.unwrap_or(available.len())];
        self.bytes += taken.len();
        match &mut self.end {
            Some(end) => extend_end(end, taken),
            None if self.line.len() + taken.len() > self.max_bytes => {
                let (length, all) = (taken.len(), std::mem::take(&mut self.line));
                self.line = all[..all.len().min(ENDS)].to_vec();
                self.line.extend(taken.iter().take(ENDS - self.line.len()));
                let mut end = all[all.len().saturating_sub(ENDS)..].to_vec();
                extend_end(&mut end, &taken[length.saturating_sub(ENDS)..]);
                self.end = Some(end);
            }
            None => self.line.extend_from_slice(taken),
        }
        let consumed = newline.map_or(available.len(), |at| at + 1);
        (consumed, newline.map(|_| self.take()))
    }

    /// Returns the last line of the stream, if it has no newline.
    pub fn rest(&mut self) -> Option<Line> {
        let is_rest = !self.line.is_empty() || self.end.is_some();
        is_rest.then(|| self.take())
    }

    fn take(&mut self) -> Line {
        let (line, bytes) = (std::mem::take(&mut self.line), std::mem::take(&mut self.bytes));
        match self.end.take() {
            Some(end) => Line::TooLong(line, end, bytes),
            None => Line::Whole(line),
        }
    }
}

/// Adds bytes to the end of a line, of which the last ones are kept.
fn extend_end(end: &mut Vec<u8>, bytes: &[u8]) {
    end.extend_from_slice(bytes);
    let surplus = end.len().saturating_sub(ENDS);
    end.drain(..surplus);
}

/// Messages as lines of two streams.
pub struct Duplex<R, W> {
    lines: Lines<R>,
    write: Arc<Mutex<Option<W>>>,
    /// The answer to a line that could not be read, on its way.
    refusing: Option<JoinHandle<()>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static> Duplex<R, W> {
    pub fn new(read: R, write: W, max_bytes: usize) -> Self {
        let write = Arc::new(Mutex::new(Some(write)));
        Self { lines: Lines::new(read, max_bytes), write, refusing: None }
    }

    /// Sends a message.
    pub fn send<T: Serialize>(
        &self,
        message: T,
    ) -> impl Future<Output = io::Result<()>> + use<T, R, W> {
        let to = Arc::clone(&self.write);
        async move { write(&to, serde_json::to_vec(&message)?).await }
    }

    /// Reads a line. Returns `None` at the end of the stream.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Line> {
        // One at a time, so that a peer that reads nothing is not owed more and more.
        if let Some(refusing) = &mut self.refusing {
            let _ = refusing.await;
            self.refusing = None;
        }
        self.lines.next().await.ok().flatten()
    }

    /// Begins to answer a line that cannot be read.
    pub fn refuse(&mut self, answer: Vec<u8>) {
        let to = Arc::clone(&self.write);
        self.refusing = Some(tokio::spawn(async move {
            // If the peer is gone, the next read or write reports it.
            let _ = write(&to, answer).await;
        }));
    }

    /// Closes the stream to the peer.
    pub async fn close(&mut self) {
        self.write.lock().await.take();
    }
}

/// Writes a line, if the stream is still open.
async fn write<W: AsyncWrite + Unpin>(to: &Mutex<Option<W>>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut to = to.lock().await;
    let Some(stream) = to.as_mut() else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    stream.write_all(&line).await?;
    stream.flush().await
}

/// Makes a message what JSON demands where that is plain: without a mark before it, and with U+FFFD
/// for each half of a surrogate pair, as JavaScript and Python write those. Fails with the reason
/// if it is not UTF-8.
pub fn mended(mut message: Vec<u8>) -> Result<Vec<u8>, (Vec<u8>, String)> {
    if message.starts_with(MARK) {
        message.drain(..MARK.len());
    }
    if let Err(error) = std::str::from_utf8(&message) {
        let at = error.valid_up_to();
        let byte = message.get(at).copied().unwrap_or_default();
        return Err((message, format!("it is not UTF-8, look at the byte 0x{byte:02x} at {at}")));
    }
    let mut at = 0;
    while let Some(next) = message[at..].iter().position(|byte| *byte == b'\\') {
        at += next;
        let Some(unit) = unit(&message, at) else {
            at += 2;
            if at >= message.len() {
                break;
            }
            continue;
        };
        let is_high = (0xd800..0xdc00).contains(&unit);
        let is_pair = is_high
            && self::unit(&message, at + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        if is_pair {
            at += 12;
        } else {
            if (0xd800..0xe000).contains(&unit) {
                message[at + 2..at + 6].copy_from_slice(b"fffd");
            }
            at += 6;
        }
    }
    Ok(message)
}

/// Returns the unit of UTF-16 whose escape begins at `at`.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digit = |value: u16, byte: &u8| {
        let digit = char::from(*byte).to_digit(16)?;
        Some(value << 4 | u16::try_from(digit).ok()?)
    };
    digits.iter().try_fold(0, digit)
}

/// The keys of a message's outermost object, also if the rest of it cannot be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub id: Option<RequestId>,
    kind: Kind,
    /// It has the key `jsonrpc`.
    pub is_named: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// No object.
    #[default]
    Text,
    Object,
    /// It has the key `result` or `error`.
    Answer,
    /// It has the key `method`.
    Request,
}

impl Outline {
    pub fn of(text: &[u8]) -> Self {
        let mut outline = Self::default();
        outline.read(text);
        outline
    }

    pub fn is_object(&self) -> bool {
        self.kind != Kind::Text
    }

    pub fn is_answer(&self) -> bool {
        self.kind == Kind::Answer
    }

    /// Returns `true` for a request and for a notification.
    pub fn is_request(&self) -> bool {
        self.kind == Kind::Request
    }

    /// Returns the outline of a message of which only the ends are known.
    pub fn of_ends(start: &[u8], end: &[u8]) -> Self {
        let mut outline = Self::of(start);
        // The outermost keys at the end follow the last bracket that closes something else.
        let end = end.trim_ascii_end().strip_suffix(b"}").unwrap_or_default();
        let close = end.iter().rposition(|byte| matches!(byte, b'}' | b']' | b'{' | b'['));
        let tail = close.map_or(end, |at| &end[at + 1..]);
        if let Some(comma) = tail.iter().position(|byte| *byte == b',') {
            outline.read(&[b"{", &tail[comma + 1..], b"}"].concat());
        }
        outline
    }

    fn read(&mut self, text: &[u8]) {
        let text = text.strip_prefix(MARK).unwrap_or(text).trim_ascii();
        if text.first() == Some(&b'{') {
            self.kind = self.kind.max(Kind::Object);
        }
        if self.kind == Kind::Text {
            return;
        }
        let (mut at, mut depth) = (0, 0_usize);
        while let Some(byte) = text.get(at) {
            match byte {
                b'"' => {
                    let end = after_string(text, at);
                    // This also takes a key that no comma precedes.
                    let rest = text[end..].trim_ascii_start();
                    if depth == 1 && rest.first() == Some(&b':') {
                        self.note(&text[at..end], rest);
                    }
                    at = end;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
    }

    /// Notes a key, and what follows it, from the colon on.
    fn note(&mut self, key: &[u8], rest: &[u8]) {
        match key {
            b"\"method\"" => self.kind = Kind::Request,
            b"\"result\"" | b"\"error\"" => self.kind = self.kind.max(Kind::Answer),
            b"\"jsonrpc\"" => self.is_named = true,
            b"\"id\"" => {
                let value = rest.strip_prefix(b":").unwrap_or_default();
                let value = value.trim_ascii_start();
                let is_end =
                    |byte: &u8| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = if value.first() == Some(&b'"') {
                    after_string(value, 0)
                } else {
                    value.iter().position(is_end).unwrap_or(value.len())
                };
                let id = serde_json::from_slice(&value[..end]).ok();
                self.id = self.id.take().or(id);
            }
            _ => {}
        }
    }
}

/// Returns the place after the string that begins at `at`.
fn after_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced_and_whole_ones_stay() {
        for (text, expected) in [
            (r#""a\ud83db""#, r#""a\ufffdb""#),
            (r#""\udc00\ud83d\ude00\uD83D""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\u0041 \\ud83d \\\ud83d""#, r#""\ufffd\u0041 \\ud83d \\\ufffd""#),
            ("\u{feff}{}", "{}"),
            (r#""\u12"#, r#""\u12"#),
            ("\"\\", "\"\\"),
        ] {
            assert_eq!(mended(text.into()).unwrap(), expected.as_bytes(), "{text}");
        }
        let (_, reason) = mended(b"\"a\xff\"".to_vec()).unwrap_err();
        assert_eq!(reason, "it is not UTF-8, look at the byte 0xff at 2");
    }

    #[test]
    fn the_number_of_a_message_is_found_whatever_else_is_wrong() {
        let number = |id| Some(RequestId::Number(id));
        let deep = format!(r#"{{"x":{}{},"id":7}}"#, "[".repeat(500), "]".repeat(500));
        for (text, id) in [
            (&br#"{"id":7,"params":{"id":1,"x":NaN}}"#[..], number(7)),
            (br#"{"params":{"id":1,"x":"}\"\xff"},"id" : 7}"#, number(7)),
            (br#"{"method":"x","id":"a-1","params":1e400"#, Some(RequestId::String("a-1".into()))),
            (br#"{"params":{"id":1}}"#, None),
            (br#"{"id":null,"error":"#, None),
            (br#"{"method":"x" "id" :7}"#, number(7)),
            (br#"{"method":"id","params":["id"]}"#, None),
            (br#"{"id"#, None),
            (b"id: 7", None),
            (br#"{"id":1.5}"#, None),
            (deep.as_bytes(), number(7)),
        ] {
            assert_eq!(Outline::of(text).id, id, "{}", String::from_utf8_lossy(text));
        }
        let outline = Outline::of(br#"{"jsonrpc":"2.0","id":7,"result":{"method":1}}"#);
        assert_eq!((outline.is_answer(), outline.is_named), (true, true));
    }

    #[test]
    fn the_ends_of_a_long_message_are_enough_for_its_number() {
        for (start, end, id) in [
            (r#"{"jsonrpc":"2.0","id": 7,"result":{"id":1,"x":"aa"#, r#"aa"}}"#, Some(7)),
            (r#"{"result":{"id":1,"x":"aa"#, r#"aa"},"jsonrpc":"2.0","id":7}"#, Some(7)),
            (r#"{"result":{"id":1,"x":"aa"#, r#"aa","id":3}}"#, None),
        ] {
            let outline = Outline::of_ends(start.as_bytes(), end.as_bytes());
            assert_eq!(outline.id, id.map(RequestId::Number), "{start} {end}");
        }
    }

    #[test]
    fn the_ends_of_a_long_line_are_the_same_however_it_arrives() {
        let line: Vec<u8> = (b'a'..=b'z').cycle().take(2 * ENDS + 100).collect();
        for piece in [1, ENDS, 2 * ENDS, line.len()] {
            let mut assembly = Assembly::new(ENDS + 50);
            for part in line.chunks(piece) {
                assert!(assembly.push(part).1.is_none());
            }
            let Some(Line::TooLong(start, end, bytes)) = assembly.rest() else { panic!("{piece}") };
            assert_eq!((start.as_slice(), bytes), (&line[..ENDS], line.len()), "{piece}");
            assert_eq!(end, line[line.len() - ENDS..], "{piece}");
        }
    }

    #[tokio::test]
    async fn a_last_line_needs_no_end() {
        let mut lines = Lines::new(&b"one\n\ntwo"[..], 100);
        let mut read = Vec::new();
        while let Some(Line::Whole(line)) = lines.next().await.unwrap() {
            read.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(read, ["one", "", "two"]);
    }
}
