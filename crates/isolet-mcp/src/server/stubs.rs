//! The tools of other servers as Python has them: signatures and stub files.

use crate::hub::Hub;
use isolet::{Tool, ToolSpec, search_tools, tool_stub};

use super::tools::ServerFacts;

/// The most characters of stubs in an answer to a search. The best match is always shown.
const STUB_CHARS: usize = 6_000;

/// The most characters of the signature of a tool whose stub does not fit.
const SIGNATURE_CHARS: usize = 1_500;

/// Returns the known facts about the servers without asking them. If there are more than `most`
/// tools, only counts them, because signatures take time.
pub(super) async fn known(hub: &Hub, most: usize) -> Vec<ServerFacts> {
    let mut servers = Vec::new();
    let listed = hub.servers();
    let total: usize = listed.iter().filter_map(|server| server.tools).sum();
    for server in listed {
        let described = match server.tools {
            Some(_) if total <= most => hub.describe(&server.name).await.ok(),
            _ => None,
        };
        let signatures = described
            .map(|tools| tools.into_iter().map(|tool| tool.signature).collect::<Vec<String>>());
        servers.push(ServerFacts { module: server.module, tools: server.tools, signatures });
    }
    servers
}

/// Finds tools, and returns them as stubs. Asks the servers whose tools are not known.
pub(super) async fn search(
    hub: &Hub,
    query: &str,
    server: Option<&str>,
    limit: usize,
) -> Result<String, String> {
    let servers = hub.servers();
    let wanted =
        |of: &crate::hub::Server| server.is_none_or(|name| of.module == name || of.name == name);
    let mut found: Vec<(String, Tool)> = Vec::new();
    let mut missing = Vec::new();
    for of in servers.iter().filter(|of| wanted(of)) {
        match hub.tools(&of.name).await {
            Ok(tools) => found.extend(tools.into_iter().map(|tool| (of.module.clone(), tool))),
            Err(error) => missing.push(format!("# {}: {}", of.module, error.message())),
        }
    }
    if found.is_empty() && missing.is_empty() {
        let names: Vec<&str> = servers.iter().map(|of| of.module.as_str()).collect();
        return Err(format!(
            "there is no server `{}`, there are {}",
            server.unwrap_or_default().escape_debug(),
            names.join(", ")
        ));
    }
    let specs: Vec<&ToolSpec> = found.iter().map(|(_, tool)| tool.spec()).collect();
    let places = search_tools(query, &specs, limit);
    let mut left = STUB_CHARS;
    let (places, others): (Vec<usize>, Vec<usize>) = places.into_iter().partition(|&at| {
        let size = tool_stub(&found[at].0, "", &[specs[at]]).len();
        let has_room = left == STUB_CHARS || size <= left;
        if has_room {
            left = left.saturating_sub(size);
        }
        has_room
    });
    let mut text = String::new();
    // In the order of the servers, and of relevance within each.
    for of in &servers {
        let of_server = places.iter().filter(|&&at| found[at].0 == of.module);
        let specs: Vec<&ToolSpec> = of_server.map(|&at| specs[at]).collect();
        if !specs.is_empty() {
            text.push_str(&format(&of.module, &specs));
        }
    }
    if !others.is_empty() {
        text.push_str("# These fit too. A search for a name shows it whole, with its types.\n");
        for &at in &others {
            let signature = specs[at].to_string();
            let is_short = signature.len() <= SIGNATURE_CHARS;
            let shown = if is_short { signature } else { format!("{}(...)", specs[at].name()) };
            text.extend(["# module ", &found[at].0, "\ndef ", &shown, ": ...\n"]);
        }
    }
    if text.is_empty() {
        text.push_str("# no tool fits; other words may find one\n");
    }
    for line in &missing {
        text.extend([line, "\n"]);
    }
    Ok(text)
}

/// Returns the tools of a server as a stub file.
#[must_use]
pub fn format(module: &str, specs: &[&ToolSpec]) -> String {
    format!("# module {module}\n{}\n", tool_stub(module, "", specs))
}
