//! Messages of JSON-RPC as peers send them: lines, mended text, and outlines of what cannot be
//! read.

use isolet::fuzzing::measured;
use isolet_support::json_rpc::{Assembly, Line, Outline, mended};

/// The longest line of the checks.
const MAX_LINE: usize = 300;
/// The bytes that are kept of each end of a longer one.
const ENDS: usize = 256;

/// Puts the bytes together as lines, however they arrive; mends them, and takes their outline. A
/// line is what is between two newlines, or the ends of it; what is mended is JSON if it was, and
/// mended twice is the same; the outline has what a parser finds.
pub fn json_rpc(data: &[u8]) {
    let whole = lines(data, data.len());
    for piece in [1, 7] {
        assert_eq!(lines(data, piece), whole, "pieces of {piece} bytes");
    }
    outline(data);
    let (mended_once, used) = measured(|| mended(data.to_vec()));
    assert!(used.peak <= 4 * data.len() + 1024, "{used:?}");
    match mended_once {
        Ok(text) => {
            let parsed = serde_json::from_slice::<serde_json::Value>(data);
            if let Ok(parsed) = parsed {
                assert_eq!(serde_json::from_slice(&text).ok(), Some(parsed));
            }
            let has_mark = text.starts_with(b"\xef\xbb\xbf");
            assert_eq!(
                mended(text.clone()).ok().filter(|_| !has_mark),
                Some(text).filter(|_| !has_mark)
            );
        }
        Err((_, reason)) => assert!(reason.starts_with("it is not UTF-8, look at "), "{reason}"),
    }
}

/// Returns the lines, or the ends and the length of those that are too long.
fn lines(data: &[u8], piece: usize) -> Vec<(Vec<u8>, Vec<u8>, usize)> {
    let (mut assembly, mut lines) = (Assembly::new(MAX_LINE), Vec::new());
    let mut note = |line| match line {
        Line::Whole(line) => {
            assert!(line.len() <= MAX_LINE && !line.contains(&b'\n'));
            let length = line.len();
            lines.push((line, Vec::new(), length));
        }
        Line::TooLong(start, end, length) => {
            assert!(length > MAX_LINE && start.len() == ENDS.min(length), "{length}");
            assert_eq!(end.len(), ENDS.min(length));
            lines.push((start, end, length));
        }
    };
    for chunk in data.chunks(piece.max(1)) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let (taken, line) = assembly.push(rest);
            assert!(taken > 0);
            rest = rest.get(taken..).unwrap_or_default();
            line.into_iter().for_each(&mut note);
        }
    }
    assembly.rest().into_iter().for_each(&mut note);
    // They are the bytes between two newlines.
    let plain = data.split(|byte| *byte == b'\n');
    let last_is_empty = data.is_empty() || data.ends_with(b"\n");
    let count = plain.clone().count() - usize::from(last_is_empty);
    assert_eq!(lines.len(), count);
    for (line, (start, end, length)) in plain.zip(&lines) {
        assert!(line.starts_with(start) && line.ends_with(end) && line.len() == *length);
    }
    lines
}

/// The outline of an object is that of a parser.
fn outline(data: &[u8]) {
    let outline = Outline::of(data);
    let Ok(parsed) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    let Some(object) = parsed.as_object() else { return assert!(!outline.is_object()) };
    assert!(outline.is_object());
    // A key may be written with escapes, which the outline does not read.
    if data.contains(&b'\\') {
        return;
    }
    assert_eq!(outline.is_request(), object.contains_key("method"));
    assert_eq!(outline.is_named, object.contains_key("jsonrpc"));
    let has_answer = object.contains_key("result") || object.contains_key("error");
    assert_eq!(outline.is_answer(), has_answer && !object.contains_key("method"));
    let is_once = data.windows(4).filter(|four| four == b"\"id\"").count() == 1;
    if is_once && let Some(id) = object.get("id") {
        let found = outline.id.and_then(|id| serde_json::to_value(id).ok());
        match found {
            // It may be written as a float that is a whole number.
            Some(found) => assert!(found == *id || found.as_f64() == id.as_f64(), "{found} {id}"),
            None => assert!(!id.is_i64() && !id.is_string(), "{id}"),
        }
    }
}
