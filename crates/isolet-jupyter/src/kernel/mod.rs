//! A kernel without a transport: requests of front ends come in, answers and what cells publish go
//! out, and one session runs the cells.
//!
//! Requests of the channel `shell` are carried out in their order. Those of `control` are carried
//! out at once, also while a cell runs.

mod asks;
mod cells;
mod comms;
mod contents;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod history;
mod questions;
mod running;
mod text;

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::future::BoxFuture;
use isolet::{Cell, Execution, Session, SessionState, Value};
use isolet_service::core::in_options;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use self::asks::Ask;
pub use self::cells::limits;
use self::comms::Comms;
use self::contents::{
    Answer, CodemirrorMode, CommInfoRequest, Empty, ErrorContent, HistoryReply, HistoryRequest,
    KernelInfoReply, LanguageInfo, ShutdownReply, ShutdownRequest, State, Status,
};
use self::history::History;
use self::running::Running;
use crate::message::{
    Channel, Header, Headers, Message, MessageKind, PROTOCOL, Peer, Request, RequestKind, To,
};

/// How many requests may wait for their turn, and the bytes of all of them.
const WAITING_REQUESTS: usize = 1000;
const WAITING_BYTES: usize = 128 << 20;

/// How many messages may wait for the transport.
const WAITING_MESSAGES: usize = 16;

/// How many requests may wait for the kernel to look at them.
const ARRIVING: usize = 64;

/// Where a kernel's sessions come from.
pub trait Sessions: Send {
    /// Opens a session, for the first cell or after the last session was lost.
    fn open(&mut self) -> BoxFuture<'_, Result<Session>>;

    /// Called before code runs in the session, and may have it wait. An error is what the front end
    /// gets in place of its result.
    fn admit(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Called when that code has ended, with its execution if there is one.
    fn ran(&mut self, _execution: Option<&Execution>) {}

    /// Called after each cell: what it changed may be taken out.
    fn settle<'a>(&'a mut self, session: &'a mut Session) -> BoxFuture<'a, Result<()>>;
}

/// What a kernel is told about its surroundings.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Passes HTML, JavaScript and the messages of widgets on as the guest made them. They run in
    /// the front end's page, with its user's rights.
    pub trusts_output: bool,
    /// The most bytes of each stream of a cell that are passed on.
    pub max_output_bytes: Option<u64>,
    /// What a guest may reach, in words.
    pub access: String,
}

/// What arrives at a kernel.
#[derive(Debug)]
pub enum Arrival {
    Request(Request),
    /// An interrupt from elsewhere, such as a signal.
    Interrupt,
}

/// Why a kernel has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A front end has asked for it.
    Shutdown {
        /// Set if another kernel is to take its place.
        restarts: bool,
    },
    /// Nobody is there any more.
    Gone,
}

/// The ends of a kernel for a transport.
pub struct Ends {
    pub arrivals: mpsc::Sender<Arrival>,
    pub messages: mpsc::Receiver<Message>,
}

/// A kernel.
pub struct Kernel<S> {
    sessions: S,
    options: Options,
    arrivals: mpsc::Receiver<Arrival>,
    out: Out,
    waiting: Waiting,
    /// `None` before the first one is open, and after one was lost.
    session: Option<Guest>,
    history: History,
    comms: Comms,
    /// How many cells were counted.
    count: u64,
    python: String,
    ended: Option<Ended>,
}

/// A session with the guest's half of a kernel in it.
struct Guest {
    session: Session,
    asks: mpsc::Receiver<Ask>,
}

/// The way out.
struct Out {
    messages: mpsc::Sender<Message>,
    headers: Headers,
}

/// Requests that wait for their turn.
#[derive(Default)]
struct Waiting {
    requests: VecDeque<(Request, Fate)>,
    bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Run,
    /// A cell before it has failed.
    Abort,
}

/// Makes a kernel, and the ends for its transport.
pub fn kernel<S: Sessions>(sessions: S, options: Options) -> Result<(Kernel<S>, Ends)> {
    let (arrivals, arriving) = mpsc::channel(ARRIVING);
    let (sender, messages) = mpsc::channel(WAITING_MESSAGES);
    let kernel = Kernel {
        sessions,
        options,
        arrivals: arriving,
        out: Out { messages: sender, headers: Headers::new()? },
        waiting: Waiting::default(),
        session: None,
        history: History::default(),
        comms: Comms::default(),
        count: 0,
        python: String::new(),
        ended: None,
    };
    Ok((kernel, Ends { arrivals, messages }))
}

impl<S: Sessions> Kernel<S> {
    /// Answers requests until one ends the kernel, or nobody can send one any more.
    ///
    /// # Errors
    ///
    /// If the first session cannot be opened.
    pub async fn serve(mut self) -> Result<Ended> {
        self.out.status(None, State::Starting).await?;
        self.open().await?;
        loop {
            if let Some(ended) = self.ended {
                // In good order: its files are closed.
                if let Some(mut guest) = self.session.take() {
                    guest.session.close().await;
                }
                return Ok(ended);
            }
            let next = match self.waiting.pop() {
                Some(next) => Some(next),
                None => match self.arrivals.recv().await {
                    None => return Ok(Ended::Gone),
                    Some(Arrival::Interrupt) => None,
                    Some(Arrival::Request(request)) => Some((request, Fate::Run)),
                },
            };
            let Some((request, fate)) = next else { continue };
            if self.answer(&request, fate).await.is_err() {
                // The transport has gone.
                return Ok(Ended::Gone);
            }
        }
    }

    /// Opens a session if there is none, and has it tell what its cells publish.
    async fn open(&mut self) -> Result<()> {
        if self.session.as_ref().is_some_and(|guest| guest.session.state() == SessionState::Ready) {
            return Ok(());
        }
        self.session = None;
        self.comms.forget();
        let mut session = self.sessions.open().await?;
        let (tool, asks) = asks::channel();
        session.register(tool).await?;
        let connect = Cell::new(questions::CONNECT).name(questions::NAME);
        let has_widgets = Value::from(self.options.trusts_output);
        let connect = connect.inputs([(questions::HAS_WIDGETS, has_widgets)]);
        let connected = session.run(connect).await?.into_result()?;
        connected.as_str().unwrap_or_default().clone_into(&mut self.python);
        self.session = Some(Guest { session, asks });
        Ok(())
    }

    /// Answers a request whose turn it is.
    async fn answer(&mut self, request: &Request, fate: Fate) -> Result<()> {
        if request.channel == Channel::Stdin {
            // Nobody waits for it any more.
            return Ok(());
        }
        self.out.status(Some(&request.header), State::Busy).await?;
        match RequestKind::of(&request.header.kind) {
            Some(RequestKind::Execute) if fate == Fate::Abort => {
                let aborted = contents::ExecuteReply::Aborted;
                self.out.reply(request, MessageKind::ExecuteReply, &aborted).await?;
            }
            Some(RequestKind::Execute) => self.execute(request).await?,
            Some(RequestKind::Complete) => self.complete(request).await?,
            Some(RequestKind::Inspect) => self.inspect(request).await?,
            Some(RequestKind::IsComplete) => self.is_complete(request).await?,
            Some(RequestKind::History) => self.find_in_history(request).await?,
            Some(RequestKind::CommOpen | RequestKind::CommMsg | RequestKind::CommClose) => {
                self.receive_of_comm(request).await?;
            }
            Some(RequestKind::CommInfo) => self.tell_comms(request).await?,
            Some(kind) => self.answer_at_once(request, kind).await?,
            // As other kernels do: there is no answer that its sender knows.
            None => {}
        }
        self.out.status(Some(&request.header), State::Idle).await
    }

    /// Answers what needs no session.
    async fn answer_at_once(&mut self, request: &Request, kind: RequestKind) -> Result<()> {
        match kind {
            RequestKind::KernelInfo => self.tell_of_itself(request).await,
            RequestKind::Interrupt => {
                self.out.reply(request, MessageKind::InterruptReply, &Answer::Ok(Empty {})).await
            }
            RequestKind::Shutdown => {
                let asked: ShutdownRequest = contents(request).unwrap_or_default();
                self.ended = Some(Ended::Shutdown { restarts: asked.restart });
                let answer = Answer::Ok(ShutdownReply { restart: asked.restart });
                self.out.reply(request, MessageKind::ShutdownReply, &answer).await
            }
            RequestKind::Debug => {
                let reason = "isolet's kernel has no debugger, as `kernel_info_reply` says";
                let refused = refused("NotImplementedError", reason);
                self.out.reply(request, MessageKind::DebugReply, &refused).await
            }
            _ => Ok(()),
        }
    }

    /// Looks at what arrives while a cell runs: what cannot wait is answered.
    async fn meanwhile(&mut self, request: Request, running: &mut Running) -> Result<()> {
        match request.channel {
            Channel::Stdin => {
                running.take_input(&request);
                Ok(())
            }
            Channel::Control => {
                self.out.status(Some(&request.header), State::Busy).await?;
                if let Some(kind) = RequestKind::of(&request.header.kind) {
                    if kind == RequestKind::Interrupt {
                        running.interrupt();
                    }
                    self.answer_at_once(&request, kind).await?;
                }
                self.out.status(Some(&request.header), State::Idle).await
            }
            Channel::Shell => match self.waiting.push(request) {
                Ok(()) => Ok(()),
                Err(request) => self.refuse(&request).await,
            },
        }
    }

    /// Tells a front end that its request cannot even wait.
    async fn refuse(&mut self, request: &Request) -> Result<()> {
        self.out.status(Some(&request.header), State::Busy).await?;
        let (requests, bytes) = (self.waiting.requests.len(), self.waiting.bytes);
        let reason = format!(
            "the kernel has {requests} requests of {bytes} bytes waiting, the limits are \
             {WAITING_REQUESTS} and {WAITING_BYTES}; send it again when the running cell has ended"
        );
        let kind = match RequestKind::of(&request.header.kind) {
            Some(RequestKind::Execute) => Some(MessageKind::ExecuteReply),
            Some(RequestKind::Complete) => Some(MessageKind::CompleteReply),
            Some(RequestKind::Inspect) => Some(MessageKind::InspectReply),
            Some(RequestKind::IsComplete) => Some(MessageKind::IsCompleteReply),
            Some(RequestKind::History) => Some(MessageKind::HistoryReply),
            Some(RequestKind::KernelInfo) => Some(MessageKind::KernelInfoReply),
            Some(RequestKind::CommInfo) => Some(MessageKind::CommInfoReply),
            _ => None,
        };
        if let Some(kind) = kind {
            self.out.reply(request, kind, &refused("RuntimeError", &reason)).await?;
        }
        self.out.status(Some(&request.header), State::Idle).await
    }

    /// Aborts the cells that have come until now.
    async fn abort_waiting(&mut self) -> Result<()> {
        while let Ok(arrival) = self.arrivals.try_recv() {
            let Arrival::Request(request) = arrival else { continue };
            if let Err(request) = self.waiting.push(request) {
                self.refuse(&request).await?;
            }
        }
        for (request, fate) in &mut self.waiting.requests {
            if RequestKind::of(&request.header.kind) == Some(RequestKind::Execute) {
                *fate = Fate::Abort;
            }
        }
        Ok(())
    }

    async fn tell_of_itself(&mut self, request: &Request) -> Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let access = match &*self.options.access {
            "" => "no file of the host and no network".to_owned(),
            access => access.to_owned(),
        };
        let answer = Answer::Ok(KernelInfoReply {
            protocol_version: PROTOCOL,
            implementation: "isolet",
            implementation_version: version,
            language_info: LanguageInfo {
                name: "python",
                version: &self.python,
                mimetype: "text/x-python",
                file_extension: ".py",
                pygments_lexer: "ipython3",
                codemirror_mode: CodemirrorMode { name: "ipython", version: 3 },
                nbconvert_exporter: "python",
            },
            banner: format!(
                "Python {} in isolet {version}, a sandbox; cells can reach: {access}",
                self.python
            ),
            help_links: [],
            debugger: false,
            supported_features: [],
        });
        self.out.reply(request, MessageKind::KernelInfoReply, &answer).await
    }

    async fn find_in_history(&mut self, request: &Request) -> Result<()> {
        let answer = match contents::<HistoryRequest>(request) {
            Ok(asked) => Answer::Ok(HistoryReply { history: self.history.find(&asked) }),
            Err(error) => Answer::Error(error),
        };
        self.out.reply(request, MessageKind::HistoryReply, &answer).await
    }

    async fn tell_comms(&mut self, request: &Request) -> Result<()> {
        let answer = match contents::<CommInfoRequest>(request) {
            Ok(asked) => Answer::Ok(self.comms.list(asked.target_name.as_deref())),
            Err(error) => Answer::Error(error),
        };
        self.out.reply(request, MessageKind::CommInfoReply, &answer).await
    }
}

/// Reads the content of a request. An error is for its sender.
fn contents<T: DeserializeOwned>(request: &Request) -> Result<T, ErrorContent> {
    serde_json::from_slice(&request.content).map_err(|error| {
        let message =
            format!("the content of `{}` is not understood: {error}", request.header.kind);
        error_content("ValueError", &message)
    })
}

fn error_content(name: &str, message: &str) -> ErrorContent {
    let message = in_options(message);
    let traceback = vec![format!("{name}: {message}")];
    ErrorContent { ename: name.to_owned(), evalue: message, traceback }
}

fn refused(name: &str, message: &str) -> Answer<Empty> {
    Answer::Error(error_content(name, message))
}

impl Waiting {
    /// Adds a request, or returns it if there is no room.
    fn push(&mut self, request: Request) -> Result<(), Box<Request>> {
        let bytes = self.bytes + request.size();
        if self.requests.len() >= WAITING_REQUESTS || bytes > WAITING_BYTES {
            return Err(Box::new(request));
        }
        self.bytes = bytes;
        self.requests.push_back((request, Fate::Run));
        Ok(())
    }

    fn pop(&mut self) -> Option<(Request, Fate)> {
        let next = self.requests.pop_front()?;
        self.bytes = self.bytes.saturating_sub(next.0.size());
        Some(next)
    }
}

impl Out {
    /// Sends an answer to whom has asked.
    async fn reply(
        &mut self,
        request: &Request,
        kind: MessageKind,
        content: &impl Serialize,
    ) -> Result<()> {
        let to = To::Peer(request.channel, request.peer.clone());
        self.send(to, kind, Some(&request.header), content).await.map(drop)
    }

    /// Asks the front end that has sent a request for a line of its user. Returns the id.
    async fn ask(
        &mut self,
        peer: &Peer,
        parent: &Arc<Header>,
        content: &impl Serialize,
    ) -> Result<String> {
        let to = To::Peer(Channel::Stdin, peer.clone());
        self.send(to, MessageKind::InputRequest, Some(parent), content).await
    }

    /// Sends a message to all front ends.
    async fn publish(
        &mut self,
        kind: MessageKind,
        parent: &Arc<Header>,
        content: &impl Serialize,
    ) -> Result<()> {
        self.send(To::Everybody, kind, Some(parent), content).await.map(drop)
    }

    async fn status(&mut self, parent: Option<&Arc<Header>>, state: State) -> Result<()> {
        let content = Status { execution_state: state };
        self.send(To::Everybody, MessageKind::Status, parent, &content).await.map(drop)
    }

    async fn send(
        &mut self,
        to: To,
        kind: MessageKind,
        parent: Option<&Arc<Header>>,
        content: &impl Serialize,
    ) -> Result<String> {
        let content = serde_json::to_string(content).context("a content is no JSON")?;
        self.send_json(to, kind, parent, content, "{}".to_owned(), Vec::new()).await
    }

    async fn send_json(
        &mut self,
        to: To,
        kind: MessageKind,
        parent: Option<&Arc<Header>>,
        content: String,
        metadata: String,
        buffers: Vec<bytes::Bytes>,
    ) -> Result<String> {
        let (id, header) = self.headers.make(kind)?;
        let parent = parent.map(Arc::clone);
        let message = Message { to, kind, header, parent, metadata, content, buffers };
        self.messages.send(message).await.context("the transport has ended")?;
        Ok(id)
    }
}
