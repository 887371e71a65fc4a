//! Guest output on its way to a terminal.

#[path = "../../crates/isolet-cli/src/show/filter.rs"]
mod filter;

use filter::Filter;
use isolet::fuzzing::measured;
use isolet_support::text::{is_odd, on_one_line, strictly};

/// How many times its length output may take, of which a character becomes up to eleven, and what
/// it may take besides.
const FACTOR: usize = 64;
const FIXED: usize = 64 << 10;

/// Filters the bytes, whole and in pieces. What comes out is the same, has only the sequences that
/// may pass, and moves the cursor up within the lines that it has begun; names stay on one line.
pub fn terminal(data: &[u8]) {
    let (whole, used) = measured(|| filtered(data, data.len()));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    is_harmless(&whole);
    for piece in [1, 3] {
        assert_eq!(filtered(data, piece), whole, "pieces of {piece} bytes");
    }
    let text = String::from_utf8_lossy(data);
    let shown = strictly(&text);
    assert!(!shown.contains(|c: char| !matches!(c, '\n' | '\t') && is_active(c)), "{shown:?}");
    let line = on_one_line(&text);
    assert!(!line.contains(is_active), "{line:?}");
}

fn is_active(c: char) -> bool {
    c.is_control() || is_odd(c)
}

fn filtered(data: &[u8], piece: usize) -> String {
    let mut filter = Filter::default();
    let mut shown: String = data.chunks(piece.max(1)).map(|chunk| filter.push(chunk)).collect();
    shown.push_str(&filter.finish());
    shown
}

/// Each sequence is one of those that may pass.
fn is_harmless(shown: &str) {
    let (mut lines, mut rest) = (0_u32, shown);
    while let Some(at) = rest.find(is_active) {
        let after = rest.get(at..).unwrap_or_default();
        let mut characters = after.chars();
        match characters.next() {
            Some('\n') => lines += 1,
            Some('\t' | '\r' | '\x08') => {}
            Some('\x1b') => {
                let sequence = characters.as_str().strip_prefix('[');
                let Some(sequence) = sequence else { unreachable!("{after:?} in {shown:?}") };
                let end = sequence.find(|c: char| !matches!(c, '0'..='9' | ';' | ':'));
                let end = end.unwrap_or(sequence.len());
                let (parameters, last) = sequence.split_at(end);
                match last.chars().next() {
                    Some('m' | 'K') => {}
                    Some('A') => {
                        let up = parameters.parse::<u32>().unwrap_or(u32::MAX);
                        assert!(up <= lines.min(500), "up by {up} of {lines} in {shown:?}");
                    }
                    // At the end, back to the last line.
                    Some('B') => assert!(last == "B\r", "{after:?} in {shown:?}"),
                    _ => unreachable!("{after:?} in {shown:?}"),
                }
            }
            _ => unreachable!("{after:?} in {shown:?}"),
        }
        rest = characters.as_str();
    }
}
