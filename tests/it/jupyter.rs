//! Tests of a kernel of Jupyter without a transport: what it answers and publishes, and when.

use std::sync::Arc;

use anyhow::Result;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use isolet::{Limits, Sandbox, Session};
use isolet_jupyter::kernel::{Arrival, Ended, Options, Sessions, kernel, limits};
use isolet_jupyter::message::{Channel, Header, Message, MessageKind, Peer, Request, To};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::util::sandbox;

struct FromSandbox(Sandbox);

impl Sessions for FromSandbox {
    fn open(&mut self) -> BoxFuture<'_, Result<Session>> {
        async { Ok(self.0.session().await?) }.boxed()
    }

    fn settle<'a>(&'a mut self, _: &'a mut Session) -> BoxFuture<'a, Result<()>> {
        async { Ok(()) }.boxed()
    }
}

/// A front end of a kernel that runs.
struct FrontEnd {
    arrivals: mpsc::Sender<Arrival>,
    messages: mpsc::Receiver<Message>,
    kernel: JoinHandle<Result<Ended>>,
    asked: u32,
}

fn peer(identity: &str) -> Peer {
    Peer { connection: 1, identity: identity.to_owned().into(), route: Vec::new() }
}

impl FrontEnd {
    fn start() -> Self {
        let sandbox = sandbox(limits(Limits::default()));
        let (kernel, ends) = kernel(FromSandbox(sandbox), Options::default()).unwrap();
        let kernel = tokio::spawn(kernel.serve());
        Self { arrivals: ends.arrivals, messages: ends.messages, kernel, asked: 0 }
    }

    /// Sends a request. Returns its id.
    async fn ask(&mut self, channel: Channel, kind: &str, content: Json) -> String {
        self.ask_as("me", channel, kind, content).await
    }

    async fn ask_as(
        &mut self,
        identity: &str,
        channel: Channel,
        kind: &str,
        content: Json,
    ) -> String {
        self.asked += 1;
        let id = self.asked.to_string();
        let header = json!({ "msg_id": id, "msg_type": kind }).to_string();
        let request = Request {
            channel,
            peer: peer(identity),
            header: Arc::new(Header::read(header.into()).unwrap()),
            parent: "{}".into(),
            metadata: "{}".into(),
            content: content.to_string().into(),
            buffers: Vec::new(),
        };
        self.arrivals.send(Arrival::Request(request)).await.unwrap();
        id
    }

    async fn execute(&mut self, code: &str) -> String {
        let content = json!({ "code": code, "allow_stdin": true });
        self.ask(Channel::Shell, "execute_request", content).await
    }

    /// Waits for the next message of a kind. Returns what it answers, and its content.
    async fn next(&mut self, kind: MessageKind) -> (String, Json) {
        loop {
            let message = self.messages.recv().await.unwrap();
            if message.kind == kind {
                let parent = message.parent.map(|parent| parent.id.clone());
                let content = serde_json::from_str(&message.content).unwrap();
                return (parent.unwrap_or_default(), content);
            }
        }
    }

    /// Runs a cell that begins and does not end.
    async fn run_on(&mut self) -> String {
        let running = self.execute("print('begun')\nwhile True: pass").await;
        assert_eq!(self.next(MessageKind::Stream).await.1["text"], "begun\n");
        running
    }

    async fn interrupt(&mut self) {
        self.ask(Channel::Control, "interrupt_request", json!({})).await;
    }
}

#[tokio::test]
async fn control_is_answered_while_a_cell_runs_and_shell_in_its_order() {
    let mut front_end = FrontEnd::start();
    let running = front_end.run_on().await;
    let waiting = front_end.ask(Channel::Shell, "kernel_info_request", json!({})).await;
    let at_once = front_end.ask(Channel::Control, "kernel_info_request", json!({})).await;
    assert_eq!(front_end.next(MessageKind::KernelInfoReply).await.0, at_once);
    front_end.interrupt().await;
    let (parent, content) = front_end.next(MessageKind::ExecuteReply).await;
    assert_eq!((parent, &content["ename"]), (running, &json!("KeyboardInterrupt")));
    assert_eq!(front_end.next(MessageKind::KernelInfoReply).await.0, waiting);
}

#[tokio::test]
async fn an_interrupt_right_after_a_cell_is_for_that_cell() {
    let mut front_end = FrontEnd::start();
    for _ in 0..20 {
        let running = front_end.execute("while True: pass").await;
        front_end.interrupt().await;
        let (parent, content) = front_end.next(MessageKind::ExecuteReply).await;
        assert_eq!((parent, &content["ename"]), (running, &json!("KeyboardInterrupt")));
    }
    front_end.interrupt().await;
    front_end.next(MessageKind::InterruptReply).await;
    front_end.execute("1").await;
    assert_eq!(front_end.next(MessageKind::ExecuteReply).await.1["status"], "ok");
}

#[tokio::test]
async fn a_cell_that_fails_aborts_the_cells_that_wait_and_nothing_else() {
    let mut front_end = FrontEnd::start();
    front_end.run_on().await;
    let aborted = front_end.execute("x = 1").await;
    let complete = json!({ "code": "di", "cursor_pos": 2 });
    let answered = front_end.ask(Channel::Shell, "complete_request", complete).await;
    front_end.interrupt().await;
    front_end.next(MessageKind::ExecuteReply).await;
    let (parent, content) = front_end.next(MessageKind::ExecuteReply).await;
    assert_eq!((parent, content), (aborted, json!({ "status": "aborted" })));
    let (parent, content) = front_end.next(MessageKind::CompleteReply).await;
    assert_eq!(
        (parent, &content["matches"]),
        (answered, &json!(["dict", "dir", "display", "divmod"]))
    );
    let later = front_end.execute("'x' in globals()").await;
    let (parent, content) = front_end.next(MessageKind::ExecuteResult).await;
    assert_eq!((parent, &content["data"]["text/plain"]), (later, &json!("False")));
}

#[tokio::test]
async fn a_request_that_finds_no_room_is_answered_and_the_others_wait() {
    let mut front_end = FrontEnd::start();
    front_end.run_on().await;
    for _ in 0..1000 {
        front_end.ask(Channel::Shell, "comm_info_request", json!({})).await;
    }
    let refused = front_end.execute("1").await;
    let (parent, content) = front_end.next(MessageKind::ExecuteReply).await;
    assert_eq!((parent, &content["status"]), (refused, &json!("error")));
    let reason = content["evalue"].as_str().unwrap();
    assert!(reason.starts_with("the kernel has 1000 requests of "), "{reason}");
    // What is long counts by its bytes.
    front_end.interrupt().await;
    for _ in 0..1000 {
        front_end.next(MessageKind::CommInfoReply).await;
    }
    front_end.run_on().await;
    let long = "#".repeat(30 << 20);
    for _ in 0..4 {
        front_end.execute(&long).await;
    }
    let refused = front_end.execute(&long).await;
    let (parent, content) = front_end.next(MessageKind::ExecuteReply).await;
    assert_eq!((parent, &content["status"]), (refused, &json!("error")));
}

#[tokio::test]
async fn a_line_is_taken_from_the_front_end_that_was_asked() {
    let mut front_end = FrontEnd::start();
    front_end.execute("input('name? ')").await;
    let message = loop {
        let message = front_end.messages.recv().await.unwrap();
        if message.kind == MessageKind::InputRequest {
            break message;
        }
    };
    assert_eq!(message.to, To::Peer(Channel::Stdin, peer("me")));
    let line = |text: &str| json!({ "value": text });
    front_end.ask_as("other", Channel::Stdin, "input_reply", line("no")).await;
    front_end.ask(Channel::Stdin, "something_else", line("no")).await;
    front_end.ask(Channel::Stdin, "input_reply", line("yes")).await;
    // Nobody waits for this one.
    front_end.ask(Channel::Stdin, "input_reply", line("late")).await;
    let (_, content) = front_end.next(MessageKind::ExecuteResult).await;
    assert_eq!(content["data"]["text/plain"], "'yes'");
}

#[tokio::test]
async fn a_kernel_ends_when_it_is_asked_to_also_while_a_cell_runs_or_when_nobody_is_there() {
    let mut front_end = FrontEnd::start();
    front_end.run_on().await;
    front_end.ask(Channel::Control, "shutdown_request", json!({ "restart": true })).await;
    let (_, content) = front_end.next(MessageKind::ShutdownReply).await;
    assert_eq!(content, json!({ "status": "ok", "restart": true }));
    let ended = front_end.kernel.await.unwrap().unwrap();
    assert_eq!(ended, Ended::Shutdown { restarts: true });
    let mut front_end = FrontEnd::start();
    front_end.run_on().await;
    let FrontEnd { arrivals, messages, kernel, .. } = front_end;
    drop((arrivals, messages));
    assert_eq!(kernel.await.unwrap().unwrap(), Ended::Gone);
}
