//! Displays from which nothing leaves when somebody looks at them, for notebooks: Jupyter loads
//! pictures and the like also of a file that is not trusted. Scripts run only in one that is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use crate::mime_bundle::Data;

/// The head of a frame, as in the Python package: the page loads nothing from outside of itself.
const HEAD: &str = include_str!("frame_head.html");

/// Elements that reach other hosts beside that policy.
const REACHING: [&str; 10] =
    ["link", "meta", "base", "a", "area", "frame", "iframe", "frameset", "fencedframe", "portal"];

/// Elements and attributes that load nothing, as tables and reports have them.
const ELEMENTS: [&str; 46] = [
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "caption",
    "code",
    "col",
    "colgroup",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "s",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
];
const ATTRIBUTES: [&str; 17] = [
    "align", "alt", "border", "class", "colspan", "dir", "halign", "height", "id", "lang", "role",
    "rowspan", "scope", "scoped", "title", "valign", "width",
];

/// The permitted beginnings of a link's address.
const LINKS: [&str; 4] = ["http://", "https://", "mailto:", "#"];

/// Commands of TeX that make attributes, or other commands.
const TEX: [&str; 15] = [
    "bbox",
    "class",
    "cssid",
    "csname",
    "def",
    "href",
    "includegraphics",
    "let",
    "mmltoken",
    "newcommand",
    "newenvironment",
    "renewcommand",
    "require",
    "style",
    "url",
];

/// The text of an address that leads to another host, in any of the ways that browsers take it.
const ELSEWHERE: [&str; 7] = ["//", "\\", "http:", "https:", "ftp:", "ws:", "wss:"];

/// Makes a display with these formats inert.
pub fn made_inert(formats: Vec<(String, Data)>) -> Vec<(String, Data)> {
    let mut made: Vec<(String, Data)> = Vec::with_capacity(formats.len());
    let has = |name: &str| formats.iter().any(|(format, _)| format == name);
    let (has_html, has_plain) = (has("text/html"), has("text/plain"));
    for (format, text) in formats {
        match (format.as_str(), &text) {
            ("text/html", Data::Text(page)) if !is_inert_html(page) => {
                made.push((format, Data::Text(framed(page))));
            }
            ("image/svg+xml", Data::Text(picture)) if !is_inert_svg(picture) => {
                if !has_html {
                    // As a picture it has no scripts, and loads nothing.
                    let data = STANDARD.encode(picture);
                    let page = format!("<img src=\"data:image/svg+xml;base64,{data}\">");
                    made.push(("text/html".to_owned(), Data::Text(page)));
                }
            }
            ("text/markdown", Data::Text(source)) if !is_inert_markdown(source) => {
                made.retain(|(format, _)| format != "text/plain");
                made.push(("text/plain".to_owned(), text));
            }
            ("text/latex", Data::Text(source)) if has_tex(source) => {
                if !has_plain {
                    made.push(("text/plain".to_owned(), text));
                }
            }
            ("text/plain", _) if made.iter().any(|(format, _)| format == "text/plain") => {}
            (_, Data::Json(json)) if format != "application/json" && leads_elsewhere(json) => {}
            // Pages that are made of notebooks have it as it is.
            (_, Data::Text(text)) if is_media(&format) && !is_base64(text) => {}
            _ => made.push((format, text)),
        }
    }
    made
}

/// Returns a page in frames without scripts that load nothing, for any content: the policy of the
/// outer one is that of the inner one, and also forbids that the inner one navigates elsewhere.
fn framed(page: &str) -> String {
    let style = "position: fixed; inset: 0; width: 100%; height: 100%; border: 0";
    let inner = escaped(&format!("{HEAD}{}", without_reaching(page)));
    let outer =
        format!("{HEAD}<iframe sandbox=\"\" style=\"{style}\" srcdoc=\"{inner}\"></iframe>");
    let style = "width: 100%; height: 22em; border: 0; background: white";
    format!("<iframe sandbox=\"\" style=\"{style}\" srcdoc=\"{}\"></iframe>", escaped(&outer))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Renames the elements that reach other hosts. A browser knows an element by these very letters.
fn without_reaching(page: &str) -> String {
    let mut renamed = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once('<') {
        let tag = after.strip_prefix('/').unwrap_or(after);
        let name: String = tag.chars().take_while(|letter| is_of_name(*letter)).collect();
        renamed.push_str(before);
        let reaches = REACHING.iter().any(|reaching| name.eq_ignore_ascii_case(reaching));
        renamed.push_str(if reaches { "<x-" } else { "<" });
        rest = after;
    }
    renamed + rest
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}

/// Returns `true` if HTML is sure to load nothing: it has plain elements only, written in the
/// plainest way.
fn is_inert_html(page: &str) -> bool {
    let mut references = page.match_indices("&#").map(|(at, _)| page.get(at + 2..).unwrap_or(""));
    if has_tex(page)
        || page.contains("&bsol")
        || !references.all(|rest| rest.starts_with("39;") || rest.starts_with("34;"))
    {
        return false;
    }
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        let Some(after) = after_inert_tag(tag) else { return false };
        rest = after;
    }
    true
}

/// Returns what follows a tag that loads nothing; `None` if it may load something.
fn after_inert_tag(tag: &str) -> Option<&str> {
    if let Some(style) = tag.strip_prefix("style>").or_else(|| tag.strip_prefix("style scoped>")) {
        return after_inert_style(style);
    }
    if let Some(style) = tag.strip_prefix("style type=\"text/css\">") {
        return after_inert_style(style);
    }
    if let Some(end) = tag.strip_prefix('/') {
        let (name, after) = end.split_once('>')?;
        return ELEMENTS.contains(&name.trim_ascii_end()).then_some(after);
    }
    let (name, mut rest) = name(tag);
    if !ELEMENTS.contains(&name) {
        return None;
    }
    loop {
        // What HTML takes for spaces: of others, the attribute would be a part of a name.
        let attributes = rest.trim_ascii_start();
        if let Some(after) = attributes.strip_prefix('>').or_else(|| attributes.strip_prefix("/>"))
        {
            return Some(after);
        }
        // Between two attributes there has to be a space.
        let (attribute, value) = (attributes.len() < rest.len()).then(|| self::name(attributes))?;
        let Some(quoted) = value.strip_prefix("=\"") else {
            rest = ATTRIBUTES.contains(&attribute).then_some(value)?;
            continue;
        };
        let (value, after) = quoted.split_once('"')?;
        let is_inert = !value.contains(['<', '>'])
            && match (name, attribute) {
                (_, "style") => is_inert_style(value),
                // A link loads nothing until the reader clicks it.
                ("a", "href") => LINKS.iter().any(|link| value.starts_with(link)),
                ("img", "src") => is_picture(value),
                _ => ATTRIBUTES.contains(&attribute) || attribute.starts_with("data-"),
            };
        rest = is_inert.then_some(after)?;
    }
}

fn name(text: &str) -> (&str, &str) {
    let end = text.find(|letter| !is_of_name(letter)).unwrap_or(text.len());
    text.split_at(end)
}

fn after_inert_style(style: &str) -> Option<&str> {
    let (style, after) = style.split_once("</style>")?;
    is_inert_style(style).then_some(after)
}

fn is_inert_style(style: &str) -> bool {
    let style = style.to_ascii_lowercase();
    !style.contains(['\\', '@', '<', '&'])
        && !["url", "image", "src", "expression", "behavior"]
            .iter()
            .any(|word| style.contains(word))
}

fn is_picture(address: &str) -> bool {
    let formats = ["png", "jpeg", "gif", "webp"];
    formats.iter().any(|format| {
        let data = address.strip_prefix(&format!("data:image/{format};base64,"));
        data.is_some_and(is_base64)
    })
}

fn is_base64(data: &str) -> bool {
    data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=\n".contains(&byte))
}

/// Returns `true` for a format whose bytes a notebook has in base64.
fn is_media(format: &str) -> bool {
    let is_of = |kind: &str| format.starts_with(kind) && format != "image/svg+xml";
    ["image/", "audio/", "video/", "application/pdf"].into_iter().any(is_of)
}

/// Returns `true` if an SVG is sure to load nothing, also as a part of a page.
fn is_inert_svg(picture: &str) -> bool {
    const LOADING: [&str; 12] = [
        "\\",
        "&#",
        "@",
        "image",
        "<script",
        "<foreignobject",
        "<!entity",
        "xml-stylesheet",
        "xml:base",
        "<animate",
        "<set",
        "src",
    ];
    let picture = picture.to_ascii_lowercase();
    let all_are = |word: &str, leads: &[&str]| {
        picture.match_indices(word).all(|(at, _)| {
            let rest = picture.get(at + word.len()..).unwrap_or_default();
            leads.iter().any(|lead| rest.starts_with(lead))
        })
    };
    // matplotlib marks its pictures by an address with this end.
    let picture_has = |word: &&str| picture.replace("/stillimage", "").contains(*word);
    !LOADING.iter().any(picture_has) && all_are("href", &["=\"#", "='#"]) && all_are("url(", &["#"])
}

fn is_inert_markdown(source: &str) -> bool {
    !source.contains("![") && !source.contains('<') && !source.contains("&#") && !has_tex(source)
}

/// Returns `true` if a text has a command of TeX by which formulas load something.
fn has_tex(text: &str) -> bool {
    text.split('\\').skip(1).any(|command| {
        let end = command.find(|letter: char| !letter.is_ascii_alphabetic());
        let command = command.get(..end.unwrap_or(command.len())).unwrap_or_default();
        TEX.contains(&command.to_ascii_lowercase().as_str())
    })
}

/// Returns `true` if a text in JSON may be an address of another host.
fn leads_elsewhere(json: &Json) -> bool {
    match json {
        Json::String(text) => {
            let plain = |letter: &char| !letter.is_ascii_whitespace() && !letter.is_ascii_control();
            let text: String = text.chars().filter(plain).collect::<String>().to_ascii_lowercase();
            ELSEWHERE.iter().any(|address| text.contains(address))
        }
        Json::Array(items) => items.iter().any(leads_elsewhere),
        // These name a format, and a service for what a reader asks for.
        Json::Object(fields) => fields.iter().any(|(name, value)| {
            !matches!(name.as_str(), "$schema" | "plotlyServerURL") && leads_elsewhere(value)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(formats: &[(&str, &str)]) -> Vec<(String, String)> {
        let given = formats.iter().map(|(format, text)| {
            let is_json = format.ends_with("json");
            let json = || Data::Json(serde_json::from_str(text).unwrap());
            let data = if is_json { json() } else { Data::Text((*text).to_owned()) };
            ((*format).to_owned(), data)
        });
        let text = |data| match data {
            Data::Text(text) | Data::Bytes(text) => text,
            Data::Json(json) => json.to_string(),
        };
        made_inert(given.collect()).into_iter().map(|(format, data)| (format, text(data))).collect()
    }

    #[test]
    fn tables_reports_and_pictures_stay_as_they_are() {
        let pixel = "data:image/png;base64,iVBORw0KGgo=";
        for page in [
            "<div>\n<style scoped>\n    .dataframe tbody tr th { vertical-align: top; }\n</style>\n\
             <table border=\"1\" class=\"dataframe\">\n<thead><tr style=\"text-align: right;\">\
             <th></th><th>a &lt; b</th></tr></thead></table>\n<p>2 rows × 1 columns</p></div>",
            "<style type=\"text/css\">\n#T_1 { background: linear-gradient(90deg, red 5%) }\n\
             </style>\n<table id=\"T_1\"><td id=\"T_1_row0\" class=\"data\" >it&#39;s</td></table>",
            &format!("<img src=\"{pixel}\" width=\"9\"/><br><a href=\"https://a.example\">a</a>"),
            "<p>$\\frac{a}{\\sqrt b}$</p>",
        ] {
            assert!(is_inert_html(page), "{page}");
        }
        let picture = "<svg xmlns:xlink=\"http://www.w3.org/1999/xlink\"><path id=\"a\" \
                       clip-path=\"url(#b)\"/><use xlink:href=\"#a\"/></svg>";
        let chart = r#"{"$schema":"https://vega.github.io/v5.json","title":"a"}"#;
        let formats = [
            ("image/svg+xml", picture),
            ("application/vnd.vegalite.v5+json", chart),
            ("text/markdown", "[a](https://a.example) $\\alpha$"),
            ("text/latex", "$\\displaystyle x^{2}$"),
            ("application/json", r#"{"at":"https://a.example"}"#),
        ];
        let expected = formats.map(|(format, text)| (format.to_owned(), text.to_owned()));
        assert_eq!(made(&formats), expected);
    }

    #[test]
    fn what_may_load_something_is_shown_where_it_cannot() {
        for page in [
            "<img src=\"http://a/\">",
            "<img src='data:image/png;base64,aa' srcset=\"http://a/ 2x\">",
            "<img src=\"data:image/svg+xml;base64,aa\">",
            "<IMG SRC=http://a/>",
            "<p style=\"background: u\\72l(http://a)\">",
            "<p style=\"background: &#117;rl(http://a)\">",
            "<style>@import \"http://a\";</style>",
            "<style>p { background: url(http://a) }</style>",
            "<style>p</style/><img src=\"http://a\"></style>",
            "<table background=\"http://a\">",
            "<p a=\"<img src=http://a>\">",
            "<p title=\"a\"b><link rel=\"preconnect\" href=\"http://a\">",
            "<!-- a --><b>",
            "<svg><image href=\"http://a\"/></svg>",
            "<a href=\"javascript:a\">a</a>",
            "<p title='\"'><img src='http://a'>",
            "<p>$\\style{background: u}{a}$ &#92;href",
            "&#92;style",
            "<p",
            "<script>a</script>",
            // For a browser these are no spaces: the attribute is a part of the name.
            "<p\u{b}title=\"a onclick=b \">",
            "<p\u{a0}title=\"a onclick=b \">",
            "<p\u{85}title=\"a onclick=b \">",
            "<p title=\"a\"\u{2003}title=\"b onclick=c \">",
            "<p>a</p\u{b}>",
        ] {
            let made = made(&[("text/html", page)]);
            let [(format, framed)] = &made[..] else { panic!("{made:?}") };
            assert_eq!(format, "text/html");
            assert!(framed.starts_with("<iframe sandbox=\"\" "), "{page}: {framed}");
            assert_eq!(framed.matches(['<', '>']).count(), 4, "{page}: {framed}");
        }
        let picture = "<svg><image href=\"http://a\"/></svg>";
        assert_eq!(
            made(&[("image/svg+xml", picture), ("text/plain", "p")]),
            [
                (
                    "text/html".to_owned(),
                    format!("<img src=\"data:image/svg+xml;base64,{}\">", STANDARD.encode(picture))
                ),
                ("text/plain".to_owned(), "p".to_owned()),
            ]
        );
        let plain = |text: &str| vec![("text/plain".to_owned(), text.to_owned())];
        let ends_its_attribute = [("image/png", "\"><img src=\"http://a"), ("text/plain", "p")];
        assert_eq!(made(&ends_its_attribute), plain("p"));
        for source in ["![a](http://a)", "<img src=http://a>", "$\\Style{a}{b}$"] {
            assert_eq!(made(&[("text/markdown", source), ("text/plain", "p")]), plain(source));
            assert_eq!(made(&[("text/plain", "p"), ("text/markdown", source)]), plain(source));
        }
        assert_eq!(made(&[("text/latex", "\\require{html}"), ("text/plain", "p")]), plain("p"));
        for chart in [
            r#"{"data":{"url":"HTTPS:\n//a"}}"#,
            r#"{"data":["\\\\a"]}"#,
            r#"{"a":{"b":[{"c":"http:a"}]}}"#,
        ] {
            let formats = [("application/vnd.vegalite.v5+json", chart), ("text/plain", "p")];
            assert_eq!(made(&formats), plain("p"), "{chart}");
        }
    }
}
