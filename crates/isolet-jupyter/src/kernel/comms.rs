//! Comms: pairs of a guest's object and a front end's, such as the halves of a widget.

use std::collections::HashMap;

use anyhow::Result;
use isolet::{Cell, ToolError, Value};

use super::asks::{Ask, AskKind};
use super::contents::{CommClose, CommContent, CommInfo, CommInfoReply, Empty};
use super::running::Running;
use super::{Kernel, Sessions, questions};
use crate::message::{MessageKind, Request, RequestKind, To};

/// The most comms that are open.
const MAX_COMMS: usize = 10_000;
/// The most bytes of the id or the target of a comm.
const MAX_NAME_BYTES: usize = 1024;

/// What the guest does with a message of a front end.
const RECEIVE: &str =
    "__import__('isolet_jupyter').receive(globals().pop('_isolet_jupyter_message'))";
const MESSAGE: &str = "_isolet_jupyter_message";

/// The open comms: their targets by their ids.
#[derive(Default)]
pub(super) struct Comms {
    targets: HashMap<String, String>,
}

impl Comms {
    /// Notes that a comm is open. Fails if it cannot be one more.
    fn open(&mut self, content: &CommContent) -> Result<(), String> {
        let target = content.target_name.clone().unwrap_or_default();
        let longest = content.comm_id.len().max(target.len());
        if longest > MAX_NAME_BYTES {
            return Err(format!(
                "a comm's name has {longest} bytes, the limit is {MAX_NAME_BYTES}"
            ));
        }
        if self.targets.len() >= MAX_COMMS && !self.targets.contains_key(&content.comm_id) {
            return Err(format!(
                "there are {} comms open, the limit is {MAX_COMMS}; close widgets that are not \
                 needed any more",
                self.targets.len()
            ));
        }
        self.targets.insert(content.comm_id.clone(), target);
        Ok(())
    }

    fn close(&mut self, id: &str) {
        self.targets.remove(id);
    }

    pub(super) fn forget(&mut self) {
        self.targets.clear();
    }

    /// Returns the open comms, of one target if it is named.
    pub(super) fn list(&self, target: Option<&str>) -> CommInfoReply<'_> {
        let is_asked = |name: &str| target.is_none_or(|target| target == name);
        let open = self.targets.iter().filter(|(_, name)| is_asked(name));
        let comms = open.map(|(id, name)| (&**id, CommInfo { target_name: name }));
        CommInfoReply { comms: comms.collect() }
    }
}

impl<S: Sessions> Kernel<S> {
    /// Passes the message of a front end on to the guest.
    pub(super) async fn receive_of_comm(&mut self, request: &Request) -> Result<()> {
        let Ok(content) = super::contents::<CommContent>(request) else { return Ok(()) };
        match RequestKind::of(&request.header.kind) {
            Some(RequestKind::CommOpen)
                if !self.options.trusts_output || self.comms.open(&content).is_err() =>
            {
                let closed = CommClose { comm_id: &content.comm_id, data: Empty {} };
                return self.out.publish(MessageKind::CommClose, &request.header, &closed).await;
            }
            Some(RequestKind::CommClose) => self.comms.close(&content.comm_id),
            _ => {}
        }
        if !self.options.trusts_output {
            return Ok(());
        }
        let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes).into_owned());
        let buffers = request.buffers.iter().map(|buffer| Value::bytes(buffer.to_vec()));
        let message = Value::List(vec![
            request.header.kind.as_str().into(),
            text(&request.content),
            text(&request.metadata),
            Value::List(buffers.collect()),
        ]);
        let cell = Cell::new(RECEIVE).name(questions::NAME).inputs([(MESSAGE, message)]);
        let mut running = Running::new(request, self.options.max_output_bytes);
        self.run_cell(cell, &mut running).await.map(drop)
    }

    /// Passes the message of a guest's comm on to the front ends.
    pub(super) async fn publish_of_comm(
        &mut self,
        ask: Ask,
        running: &mut Running,
    ) -> Result<Result<(), ToolError>> {
        let content: CommContent = match serde_json::from_str(&ask.content) {
            Ok(content) => content,
            Err(error) => return Ok(Err(ToolError::new("ValueError", error.to_string()))),
        };
        if !self.options.trusts_output {
            if ask.kind == AskKind::CommOpen {
                running.left_out += 1;
            }
            return Ok(Ok(()));
        }
        let kind = match ask.kind {
            AskKind::CommOpen => {
                if let Err(reason) = self.comms.open(&content) {
                    return Ok(Err(ToolError::new("RuntimeError", reason)));
                }
                MessageKind::CommOpen
            }
            AskKind::CommClose => {
                self.comms.close(&content.comm_id);
                MessageKind::CommClose
            }
            _ => MessageKind::CommMsg,
        };
        let (content, metadata) = (ask.content, ask.metadata);
        if serde_json::from_str::<serde::de::IgnoredAny>(&metadata).is_err() {
            return Ok(Err(ToolError::new("ValueError", "the metadata is no JSON")));
        }
        let parent = Some(&running.parent);
        self.out.send_json(To::Everybody, kind, parent, content, metadata, ask.buffers).await?;
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(id: &str, target: &str) -> CommContent {
        CommContent { comm_id: id.to_owned(), target_name: Some(target.to_owned()) }
    }

    #[test]
    fn open_comms_are_listed_by_their_targets_and_are_not_too_many() {
        let mut comms = Comms::default();
        comms.open(&content("a", "x")).unwrap();
        comms.open(&content("b", "y")).unwrap();
        assert_eq!(comms.list(None).comms.len(), 2);
        assert_eq!(comms.list(Some("y")).comms["b"].target_name, "y");
        comms.close("b");
        assert!(comms.list(Some("y")).comms.is_empty());
        for number in 1..MAX_COMMS {
            comms.open(&content(&number.to_string(), "x")).unwrap();
        }
        let refused = comms.open(&content("z", "x")).unwrap_err();
        assert!(refused.starts_with("there are 10000 comms open, the limit is 10000"), "{refused}");
        comms.open(&content("a", "x")).unwrap();
        let long = comms.open(&content(&"z".repeat(1025), "x")).unwrap_err();
        assert_eq!(long, "a comm's name has 1025 bytes, the limit is 1024");
    }
}
