//! Charts and tables of runs as an MCP App: a page of isolet's own, which a client shows in a frame
//! and to which it gives the data of a result. The guest's part is data only.

use isolet::{Display, MimeData};
use rmcp::model::{ClientCapabilities, MetaObject, Resource, ResourceContents, Tool};
use serde_json::{Value as Json, json};

use super::tools::RUN_PYTHON;

/// The extension that a client announces.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The kind of page that a client has to show.
const FORMAT: &str = "text/html;profile=mcp-app";

/// The address of the page.
pub(super) const ADDRESS: &str = "ui://isolet/displays.html";

/// The key of the data of a result, which is none for a model.
const KEY: &str = "isolet/displays";

/// The formats of displays that the page draws.
const CHART: &str = "application/vnd.isolet.chart.v1+json";
const TABLE: &str = "application/vnd.isolet.table.v1+json";

/// The most bytes of the charts and tables of a result.
const MAX_BYTES: usize = 1 << 20;

/// The page. It loads nothing, whatever a client allows it.
const PAGE: &str = concat!(
    include_str!("head.html"),
    "<style>\n",
    include_str!("displays.css"),
    "</style>\n<body></body>\n<script>\n",
    include_str!("displays.js"),
    "</script>\n</html>\n",
);

/// Whether a client shows the page.
pub(super) fn is_wanted(capabilities: Option<&ClientCapabilities>) -> bool {
    let extensions = capabilities.and_then(|capabilities| capabilities.extensions.as_ref());
    let settings = extensions.and_then(|extensions| extensions.get(EXTENSION));
    let formats = settings.and_then(|settings| settings.get("mimeTypes")?.as_array());
    formats.is_some_and(|formats| formats.iter().any(|format| format == FORMAT))
}

/// Names the page in the definitions of tools.
pub(super) fn add_to(tools: &mut [Tool]) {
    for tool in tools.iter_mut().filter(|tool| tool.name == RUN_PYTHON) {
        let meta = tool.meta.get_or_insert_with(MetaObject::new);
        meta.insert("ui".to_owned(), json!({"resourceUri": ADDRESS}));
    }
}

/// Returns the page as a resource.
pub(super) fn resource() -> Resource {
    Resource::new(ADDRESS, "displays")
        .with_description("Shows the charts, tables and pictures of a run")
        .with_mime_type(FORMAT)
}

/// Returns the page.
pub(super) fn contents() -> ResourceContents {
    let none = json!([]);
    let csp = json!({
        "connectDomains": none, "resourceDomains": none, "frameDomains": none,
        "baseUriDomains": none,
    });
    let mut meta = MetaObject::new();
    meta.insert("ui".to_owned(), json!({"csp": csp, "prefersBorder": true}));
    ResourceContents::text(PAGE, ADDRESS).with_mime_type(FORMAT).with_meta(meta)
}

/// The displays of a result that the page shows, in order.
#[derive(Default)]
pub(super) struct Shown {
    entries: Vec<Json>,
    bytes: usize,
    left_out: usize,
}

impl Shown {
    /// Adds a display. `image` is the number of its picture in the result.
    pub(super) fn add(&mut self, display: &Display, image: Option<usize>) {
        let formats = [("chart", CHART), ("table", TABLE)];
        let found = formats.into_iter().find_map(|(name, format)| {
            Some((name, display.get(format).and_then(MimeData::as_str)?))
        });
        let mut entry = serde_json::Map::new();
        if let Some((name, text)) = found {
            if self.bytes + text.len() > MAX_BYTES {
                self.left_out += usize::from(image.is_none());
            } else if let Ok(data @ Json::Object(_)) = serde_json::from_str(text) {
                self.bytes += text.len();
                entry.insert(name.to_owned(), data);
            }
        }
        if let Some(image) = image {
            entry.insert("image".to_owned(), image.into());
        }
        if !entry.is_empty() {
            self.entries.push(entry.into());
        }
    }

    /// Returns the data for the page.
    pub(super) fn meta(self) -> MetaObject {
        let mut meta = MetaObject::new();
        let data = json!({"entries": self.entries, "left_out": self.left_out});
        meta.insert(KEY.to_owned(), data);
        meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_the_page_if_it_says_that_it_shows_such_pages() {
        for (capabilities, expected) in [
            (json!({}), false),
            (json!({"extensions": {}}), false),
            (json!({"extensions": {EXTENSION: {}}}), false),
            (json!({"extensions": {EXTENSION: {"mimeTypes": ["text/html"]}}}), false),
            (json!({"extensions": {EXTENSION: {"mimeTypes": "text/html"}}}), false),
            (json!({"extensions": {EXTENSION: {"mimeTypes": ["a", FORMAT]}}}), true),
        ] {
            let parsed: ClientCapabilities = serde_json::from_value(capabilities.clone()).unwrap();
            assert_eq!(is_wanted(Some(&parsed)), expected, "{capabilities}");
        }
        assert!(!is_wanted(None));
    }

    #[test]
    fn the_page_names_no_address_and_ends_no_script_early() {
        assert_eq!(PAGE.matches("</script>").count(), 1);
        assert_eq!(PAGE.matches("<script>").count(), 1);
        let namespace = "http://www.w3.org/2000/svg";
        assert!(!PAGE.replace(namespace, "").contains("://"), "it names an address");
        for way in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("] {
            assert!(!PAGE.contains(way), "{way}");
        }
    }
}
