//! What the guest's half of a kernel asks of the host: to publish a message, or for a line of the
//! user.

use bytes::Bytes;
use isolet::{Param, Tool, ToolError, ToolSpec, Value};
use tokio::sync::{mpsc, oneshot};

/// The tool's name, until the guest's half has taken it out of the namespace.
pub(super) const TOOL: &str = "_isolet_jupyter_tell";

/// The most bytes of one message.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// How many asks may wait. Each waits in a call of its own, of which the session has a limit.
const WAITING: usize = 16;

const PARAMS: [&str; 4] = ["kind", "content", "metadata", "buffers"];

/// An ask of the guest, and where the answer goes.
pub(super) struct Ask {
    pub(super) kind: AskKind,
    /// In JSON, as the guest says.
    pub(super) content: String,
    /// In JSON, as the guest says.
    pub(super) metadata: String,
    pub(super) buffers: Vec<Bytes>,
    pub(super) answer: oneshot::Sender<Result<Value, ToolError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskKind {
    Display,
    UpdateDisplay,
    ClearOutput,
    CommOpen,
    CommMsg,
    CommClose,
    Input,
    Parent,
}

impl AskKind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "display_data" => Self::Display,
            "update_display_data" => Self::UpdateDisplay,
            "clear_output" => Self::ClearOutput,
            "comm_open" => Self::CommOpen,
            "comm_msg" => Self::CommMsg,
            "comm_close" => Self::CommClose,
            "input_request" => Self::Input,
            "parent" => Self::Parent,
            _ => return None,
        })
    }
}

/// Returns the tool with which the guest asks, and what it asks.
pub(super) fn channel() -> (Tool, mpsc::Receiver<Ask>) {
    let (sender, asks) = mpsc::channel(WAITING);
    let spec = PARAMS.iter().fold(ToolSpec::new(TOOL), |spec, name| spec.param(Param::new(*name)));
    let tool = Tool::from_handler(spec, move |arguments, cx| {
        let sender = sender.clone();
        async move {
            let (answer, answered) = oneshot::channel();
            let ask = read(&arguments, answer)?;
            // The user may take hours.
            let pause = (ask.kind == AskKind::Input).then(|| cx.pause_clock());
            let gone = || ToolError::new("RuntimeError", "the kernel has ended");
            sender.send(ask).await.map_err(|_| gone())?;
            let result = answered.await.map_err(|_| gone())?;
            drop(pause);
            result
        }
    });
    (tool, asks)
}

fn read(
    arguments: &Value,
    answer: oneshot::Sender<Result<Value, ToolError>>,
) -> Result<Ask, ToolError> {
    let wrong = |name: &str| ToolError::new("TypeError", format!("`{name}` is none"));
    let text = |name: &str| {
        let text = arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| wrong(name))
    };
    let [kind, content, metadata, _] = PARAMS;
    let kind = text(kind)?;
    let kind = AskKind::of(&kind).ok_or_else(|| wrong(&kind))?;
    let (content, metadata) = (text(content)?, text(metadata)?);
    let buffers = arguments.get("buffers").and_then(Value::as_list).unwrap_or_default();
    let buffers = buffers.iter().map(|buffer| {
        buffer.as_bytes().map(Bytes::copy_from_slice).ok_or_else(|| wrong("buffers"))
    });
    let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    let size = content.len() + metadata.len() + buffers.iter().map(Bytes::len).sum::<usize>();
    if size > MAX_BYTES {
        return Err(ToolError::new(
            "ValueError",
            format!(
                "a message of {size} bytes is too long for a front end, the limit is {MAX_BYTES}"
            ),
        ));
    }
    Ok(Ask { kind, content, metadata, buffers, answer })
}
