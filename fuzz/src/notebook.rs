//! Notebooks, and displays of guests that go into their files.

#[path = "../../crates/isolet-cli/src/notebook/file.rs"]
mod file;

use html5gum::{Token, Tokenizer};
use isolet::fuzzing::measured;
use isolet_support::inert::made_inert;
use isolet_support::mime_bundle::Data;

/// How many times its length a notebook may take, and what it may take besides.
const FACTOR: usize = 400;
const FIXED: usize = 64 << 10;
/// The formats of a display, of which an input begins with one.
const FORMATS: [&str; 8] = [
    "text/html",
    "image/svg+xml",
    "text/markdown",
    "text/latex",
    "text/plain",
    "image/png",
    "application/json",
    "application/vnd.vega.v5+json",
];
/// Elements that load or run something.
const LOADING: [&[u8]; 16] = [
    b"audio", b"base", b"embed", b"form", b"frame", b"iframe", b"input", b"link", b"meta",
    b"object", b"portal", b"script", b"source", b"svg", b"track", b"video",
];

/// Reads the bytes, by their first one, as a notebook, or as a display in one format. A notebook's
/// code cells are those of its file; HTML that stays as it is has nothing that a browser loads, by
/// another reading of it.
pub fn notebook(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    match FORMATS.get(usize::from(kind % 9)) {
        Some(format) => display(format, text),
        None => cells(text),
    }
}

fn cells(text: &str) {
    let (parsed, used) = measured(|| file::parse(text));
    assert!(used.peak <= FACTOR * text.len() + FIXED, "{} bytes took {used:?}", text.len());
    let Ok((cells, whole)) = parsed else { return };
    let all = whole["cells"].as_array().map_or(0, Vec::len);
    for (number, cell) in (1..).zip(&cells) {
        assert!(cell.number == number && cell.index < all, "{cell:?}");
        assert_eq!(whole["cells"][cell.index]["cell_type"], "code");
        assert!(cell.source.len() <= text.len());
        if cell.is_skipped() || cell.may_raise() {
            assert!(whole["cells"][cell.index]["metadata"]["tags"].is_array());
        }
    }
}

fn display(format: &str, text: &str) {
    let data = match format {
        "image/png" => Data::Bytes(text.to_owned()),
        _ if format.ends_with("json") => match serde_json::from_str(text) {
            Ok(json) => Data::Json(json),
            Err(_) => return,
        },
        _ => Data::Text(text.to_owned()),
    };
    let (made, used) = measured(|| made_inert(vec![(format.to_owned(), data)]));
    assert!(used.peak <= FACTOR * text.len() + FIXED, "{} bytes took {used:?}", text.len());
    assert!(made.len() <= 1);
    for (format, data) in made {
        let Data::Text(made) = data else { continue };
        match format.as_str() {
            "text/html" if made == text => loads_nothing(&made),
            "text/html" => is_framed(&made),
            "image/svg+xml" => assert!(!made.to_ascii_lowercase().contains("<script"), "{made}"),
            "text/markdown" => assert!(!made.contains("![") && !made.contains('<'), "{made}"),
            _ => {}
        }
    }
}

/// A browser that reads this HTML loads nothing, and runs nothing.
fn loads_nothing(html: &str) {
    for Ok(token) in Tokenizer::new(html) {
        let Token::StartTag(tag) = token else { continue };
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        assert!(!LOADING.contains(&&**tag.name), "<{name}> in {html}");
        for (attribute, value) in &tag.attributes {
            let attribute = String::from_utf8_lossy(attribute).into_owned();
            let value = String::from_utf8_lossy(value).to_ascii_lowercase();
            let is_inert = match attribute.as_str() {
                "src" => value.starts_with("data:image/"),
                "href" => name == "a" && !value.trim_start().starts_with("javascript:"),
                "style" => !["url", "image", "@", "\\"].iter().any(|word| value.contains(word)),
                "srcset" | "background" | "poster" | "action" | "formaction" | "data" | "ping" => {
                    false
                }
                other => !other.starts_with("on"),
            };
            assert!(is_inert, "{attribute}={value:?} of <{name}> in {html}");
        }
    }
}

/// A page in a frame is one element, which may run nothing.
fn is_framed(html: &str) {
    if let Some(data) = html.strip_prefix("<img src=\"data:image/svg+xml;base64,") {
        assert!(data.ends_with("\">") && data.matches('"').count() == 1, "{html}");
        return;
    }
    let tags: Vec<_> = Tokenizer::new(html)
        .filter_map(|Ok(token)| match token {
            Token::StartTag(tag) => Some(tag),
            _ => None,
        })
        .collect();
    let [frame] = tags.as_slice() else { unreachable!("{} elements in {html}", tags.len()) };
    assert_eq!(&**frame.name, b"iframe");
    let sandbox = frame.attributes.get(&b"sandbox"[..]);
    assert!(sandbox.is_some_and(|sandbox| sandbox.is_empty()), "{html}");
}
