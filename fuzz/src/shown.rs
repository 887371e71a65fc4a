//! Displays of guests on a terminal: tables of HTML, and pictures.

#[path = "../../crates/isolet-cli/src/show/sixel.rs"]
mod sixel;
#[path = "../../crates/isolet-cli/src/show/tables.rs"]
mod tables;

use isolet::fuzzing::measured;

/// What drawing a table may take: a thousand rows of a hundred cells, drawn several times.
const TABLE_BYTES: usize = 512 << 20;
/// What a picture may take: its bytes decoded, its pixels, and the sequence.
const PICTURE_BYTES: usize = 512 << 20;
/// The widest that a picture is drawn.
const MAX_WIDTH: usize = 20;

/// Draws the bytes, by their first one, as HTML or as a picture. A table has no character that a
/// terminal obeys, and is no wider than it; a picture is one sequence that ends where it does.
pub fn shown(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    if kind % 2 == 0 { table(data) } else { picture(data) }
}

fn table(data: &[u8]) {
    let Ok(html) = std::str::from_utf8(data) else { return };
    for (width, may_wrap) in [(80, true), (20, false), (1, true)] {
        let (drawn, used) = measured(|| tables::draw(html, width, may_wrap));
        assert!(used.peak <= TABLE_BYTES, "{} bytes took {used:?}", data.len());
        let Some(drawn) = drawn else { continue };
        assert!(!drawn.contains(|c: char| c.is_control() && c != '\n'), "{drawn:?}");
    }
}

fn picture(data: &[u8]) {
    let (drawn, used) = measured(|| sixel::encode(data, MAX_WIDTH));
    assert!(used.peak <= PICTURE_BYTES, "{} bytes took {used:?}", data.len());
    let Some(drawn) = drawn else { return };
    let inner = drawn.strip_prefix("\x1bP").and_then(|rest| rest.strip_suffix("\x1b\\"));
    let Some(inner) = inner else { unreachable!("{drawn:?} is no sequence") };
    assert!(inner.bytes().all(|byte| byte.is_ascii_graphic()), "{inner:?}");
    let size = inner.split_once("\"1;1;").and_then(|(_, rest)| rest.split_once(';'));
    let width = size.and_then(|(width, _)| width.parse::<usize>().ok());
    assert!(width.is_some_and(|width| (1..=MAX_WIDTH).contains(&width)), "{width:?}");
}
