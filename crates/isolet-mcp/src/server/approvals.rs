//! Calls of other servers' tools that a person has to decide about, and the list of the calls that
//! a run has made.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::hub::audit::CallOutcome;
use crate::hub::audit::CallRecord;
use crate::hub::policy::Approver;
use crate::hub::policy::Ask;
use crate::hub::policy::Decision;
use crate::hub::policy::DecisionFuture;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, oneshot};

use isolet::internals::is_invisible;
use isolet_support::json::{self, Json as AsJson};
use isolet_support::quoted::quoted;

/// The most characters of a call that are shown. A longer call is refused, because a user cannot
/// decide about text that is not shown.
const SHOWN_CHARS: usize = 4_000;

/// The most characters of all calls of a question. Further calls are asked about afterwards.
const QUESTION_CHARS: usize = 20_000;

/// The most calls that one question lists. Further ones are asked about afterwards.
pub(super) const MAX_LISTED: usize = 40;

/// The time that a question waits for calls that may follow.
const SETTLING: Duration = Duration::from_secs(1);

/// The most entries about a run's calls that are kept for its result.
const MAX_CALLS: usize = 100;

/// The calls that wait for a decision, of all runs, by the numbers of their sessions.
#[derive(Clone, Default)]
pub(super) struct ApprovalQueue(Arc<Mutex<HashMap<u64, RunEntry>>>);

/// The queue's entry of a run under way.
struct RunEntry {
    questions: mpsc::UnboundedSender<Question>,
    calls: Calls,
}

/// The calls that a run has made.
#[derive(Clone, Default)]
pub(super) struct Calls {
    pub(super) made: Vec<Call>,
    /// The number of calls beyond those.
    pub(super) more: u64,
}

/// Calls of one tool in a row that ended alike.
#[derive(Clone)]
pub(super) struct Call {
    /// Server and tool.
    pub(super) tool: String,
    pub(super) status: &'static str,
    pub(super) count: u64,
    /// Of all of them together.
    pub(super) milliseconds: u64,
}

/// A call that waits for a decision. Dropping it refuses the call.
pub(super) struct Question {
    ask: Ask,
    /// The text that the user sees.
    line: String,
    answer: oneshot::Sender<Decision>,
}

/// The part of the queue that a run has. Dropping it refuses the calls that still wait.
pub(super) struct RunApprovals {
    queue: ApprovalQueue,
    session: u64,
    questions: mpsc::UnboundedReceiver<Question>,
    /// Those that have arrived, for as long as others may follow.
    gathered: Vec<Question>,
}

impl ApprovalQueue {
    fn runs(&self) -> MutexGuard<'_, HashMap<u64, RunEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a run of this session.
    pub(super) fn register(&self, session: u64) -> RunApprovals {
        let (sender, questions) = mpsc::unbounded_channel();
        let entry = RunEntry { questions: sender, calls: Calls::default() };
        self.runs().insert(session, entry);
        RunApprovals { queue: self.clone(), session, questions, gathered: Vec::new() }
    }

    /// Notes a call.
    pub(super) fn record(&self, record: &CallRecord) {
        let mut runs = self.runs();
        let Some(run) = runs.get_mut(&record.session_id) else { return };
        let calls = &mut run.calls;
        let tool = format!("{}.{}", record.server, record.tool);
        let status = match &record.outcome {
            CallOutcome::Returned => "ok",
            CallOutcome::Raised { type_name, .. } if type_name == "PermissionError" => "refused",
            CallOutcome::Raised { .. } => "error",
            _ => "cancelled",
        };
        let milliseconds = u64::try_from(record.duration.as_millis()).unwrap_or(u64::MAX);
        let is_full = calls.made.len() == MAX_CALLS;
        match calls.made.last_mut() {
            Some(last) if last.tool == tool && last.status == status => {
                last.count += 1;
                last.milliseconds = last.milliseconds.saturating_add(milliseconds);
            }
            _ if is_full => calls.more += 1,
            _ => calls.made.push(Call { tool, status, count: 1, milliseconds }),
        }
    }
}

impl Approver for ApprovalQueue {
    fn approve(&self, ask: Ask) -> DecisionFuture<'_> {
        let questions = self.runs().get(&ask.session.id()).map(|run| run.questions.clone());
        let line = shown(&ask);
        let count = line.chars().count();
        if count > SHOWN_CHARS {
            let reason = format!(
                "it has {count} characters, and a question shows at most {SHOWN_CHARS}; the user \
                 can allow such calls with {}",
                option(&ask)
            );
            return Box::pin(std::future::ready(Decision::No(reason)));
        }
        Box::pin(async move {
            let (answer, decision) = oneshot::channel();
            let sent = questions.map(|to| to.send(Question { ask, line, answer }).is_ok());
            match sent {
                Some(true) => decision.await.unwrap_or_else(|_| {
                    Decision::No("nobody answered in time (`--approval-timeout`)".to_owned())
                }),
                _ => Decision::No("its run has ended".to_owned()),
            }
        })
    }
}

impl RunApprovals {
    /// Waits for calls to decide about: all that run side by side. None is lost if this is dropped
    /// early.
    pub(super) async fn questions(&mut self) -> Vec<Question> {
        if self.gathered.is_empty() {
            let Some(first) = self.questions.recv().await else {
                return std::future::pending().await;
            };
            self.gathered.push(first);
        }
        // Code that computes beside its calls is not waited for.
        if let [first, ..] = &self.gathered[..] {
            let _ = tokio::time::timeout(SETTLING, first.ask.session.settled()).await;
        }
        while self.gathered.len() < MAX_LISTED
            && let Ok(question) = self.questions.try_recv()
        {
            self.gathered.push(question);
        }
        let mut room = QUESTION_CHARS;
        let fits = |question: &&Question| {
            let left = room.checked_sub(question.line.len());
            room = left.unwrap_or_default();
            left.is_some()
        };
        let fitting = self.gathered.iter().take_while(fits).count().max(1);
        let rest = self.gathered.split_off(fitting.min(self.gathered.len()));
        std::mem::replace(&mut self.gathered, rest)
    }

    /// Returns the calls so far.
    pub(super) fn calls(&self) -> Calls {
        self.queue.runs().get(&self.session).map(|run| run.calls.clone()).unwrap_or_default()
    }
}

impl Drop for RunApprovals {
    fn drop(&mut self) {
        self.queue.runs().remove(&self.session);
    }
}

/// Returns the digest of what the user is asked.
pub(super) fn digest(questions: &[Question]) -> String {
    let mut hasher = blake3::Hasher::new();
    for question in questions {
        hasher.update(question.line.as_bytes()).update(&[0]);
    }
    hasher.finalize().to_hex().to_string()
}

/// Gives all of these calls the same decision.
pub(super) fn decide(questions: Vec<Question>, decision: &Decision) {
    for question in questions {
        // The run may have ended.
        let _ = question.answer.send(decision.clone());
    }
}

/// Returns the options that allow the tools that are asked about, each once.
pub(super) fn options(questions: &[Question]) -> String {
    let mut options: Vec<String> = Vec::new();
    for Question { ask, .. } in questions {
        let option = option(ask);
        if !options.contains(&option) {
            options.push(option);
        }
    }
    options.join(" and ")
}

fn option(ask: &Ask) -> String {
    format!("`--allow-tool {}`", quoted(&ask.pattern()))
}

/// Returns a call in one line, as a person can read it: what acts on a terminal, hides text or
/// looks like another call is escaped.
fn shown(ask: &Ask) -> String {
    let name = format!("{}.{}", ask.server, ask.tool);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let name = if name.chars().all(is_plain) { name } else { Json::from(name).to_string() };
    let mut arguments = Vec::new();
    // Writing to a vector does not fail.
    let _ = json::write_line(&mut arguments, &AsJson(&ask.arguments));
    let arguments = String::from_utf8_lossy(&arguments);
    let mut shown = String::new();
    for letter in format!("{name} {}", arguments.trim_end()).chars() {
        if letter.is_control() || is_invisible(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Returns the form that asks the client's user about these calls.
pub(super) fn form(questions: &[Question]) -> Result<ElicitRequestParams, serde_json::Error> {
    let mut message = String::from("The Python code wants to call");
    for question in questions {
        message.extend(["\n", &question.line]);
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Allow it?",
                "description": "once: these calls. run: also all further calls of these tools by \
                                this code. session: also by later code of the session. no: refuse.",
                "enum": ["once", "run", "session", "no"],
            },
        },
        "required": ["decision"],
    });
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: serde_json::from_value::<ElicitationSchema>(schema)?,
    })
}

/// Reads the answer of the user.
pub(super) fn decision(answer: &ElicitResult) -> Decision {
    let no = |reason: &str| Decision::No(reason.to_owned());
    match answer.action {
        ElicitationAction::Accept => {}
        ElicitationAction::Decline => return no("the user has declined"),
        _ => return no("the user has dismissed the question"),
    }
    let chosen = answer.content.as_ref().and_then(|content| content.get("decision"));
    match chosen.and_then(Json::as_str) {
        Some("once") => Decision::Once,
        Some("run") => Decision::ForRun,
        Some("session") => Decision::ForSession,
        Some("no") => no("the user has declined"),
        _ => no("the answer has no `decision` of once, run, session or no"),
    }
}
