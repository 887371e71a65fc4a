//! Lines of DSPy's client.

#[path = "../../crates/isolet-cli/src/dspy/messages.rs"]
mod messages;

use isolet::ToolSpec;
use isolet::fuzzing::measured;
use isolet_support::json_text;
use messages::{Incoming, ToolEntry, params};

/// How many times its length a line may take, and what it may take besides.
const FACTOR: usize = 600;
const FIXED: usize = 64 << 10;

/// Reads a line as a message. Its memory is bounded; the parameters of its tools are those that
/// Python can define; answers with its id and its texts are one line of ASCII.
pub fn dspy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (message, used) = measured(|| {
        let value = json_text::parse(text)?;
        isolet::from_value::<Incoming>(value).map_err(|error| error.to_string())
    });
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let Ok(message) = message else { return };
    let Incoming { id, method, params: given, .. } = message;
    let shown = method.unwrap_or_default();
    for line in [
        messages::result(id.clone(), shown.as_str().into()),
        messages::error(id.clone(), messages::METHOD_NOT_FOUND, &shown),
        messages::tool_call(&shown, &given.name, id),
    ] {
        assert!(line.is_ascii() && !line.contains(|c: char| c.is_control()), "{line:?}");
    }
    for tool in given.tools {
        if let ToolEntry::Spec { name, parameters } = tool {
            let count = parameters.len();
            let params = params(parameters);
            assert_eq!(params.len(), count);
            let spec = params.into_iter().fold(ToolSpec::new(name), ToolSpec::param);
            if let Err(error) = spec.validate() {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
