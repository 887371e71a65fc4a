//! The budget of each run for a language model.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::Answer;
use isolet::ToolContext;
use isolet::ToolError;
use isolet::internals::lock;

/// The most sessions that are remembered. Beyond that, the oldest are forgotten.
const MAX_SESSIONS: usize = 10_000;

/// About how many bytes of text a token has.
const BYTES_OF_TOKEN: u64 = 4;

pub(super) struct Budget {
    max_calls: u64,
    max_tokens: u64,
    /// By session: what its newest run has spent.
    runs: Mutex<BTreeMap<u64, Spent>>,
}

#[derive(Default)]
struct Spent {
    run: u64,
    calls: u64,
    tokens: u64,
}

/// A call that is paid for: its prompt, until more is known.
pub(super) struct Charge<'a> {
    budget: &'a Budget,
    session: u64,
    run: u64,
    prompt: u64,
}

impl Budget {
    pub(super) fn new(max_calls: u64, max_tokens: u64) -> Self {
        Self { max_calls, max_tokens, runs: Mutex::default() }
    }

    /// Charges a call of a run, unless it is beyond the budget.
    pub(super) fn charge(&self, cx: &ToolContext, prompt: &str) -> Result<Charge<'_>, ToolError> {
        let (session, run, prompt) = (cx.session_id(), cx.run_id(), tokens(prompt));
        let refuse = |message: String| Err(ToolError::new("RuntimeError", message));
        let mut runs = lock(&self.runs);
        let spent = runs.entry(session).or_default();
        if spent.run != run {
            *spent = Spent { run, ..Spent::default() };
        }
        if spent.calls >= self.max_calls {
            return refuse(format!(
                "this run has asked the language model {} times, the limit is {} (`--llm-calls`)",
                spent.calls, self.max_calls
            ));
        }
        let needed = spent.tokens.saturating_add(prompt);
        if needed > self.max_tokens {
            return refuse(format!(
                "with this prompt the run has spent {needed} tokens on the language model, the \
                 limit is {} (`--llm-tokens`)",
                self.max_tokens
            ));
        }
        spent.calls += 1;
        spent.tokens = needed;
        while runs.len() > MAX_SESSIONS {
            runs.pop_first();
        }
        Ok(Charge { budget: self, session, run, prompt })
    }
}

impl Charge<'_> {
    /// Adds the final cost of a call.
    pub(super) fn spent(&self, answer: &Answer) {
        let mut runs = lock(&self.budget.runs);
        let Some(spent) = runs.get_mut(&self.session).filter(|spent| spent.run == self.run) else {
            return;
        };
        let estimate = self.prompt.saturating_add(tokens(&answer.text));
        let cost = answer.tokens.unwrap_or(estimate);
        spent.tokens = spent.tokens.saturating_sub(self.prompt).saturating_add(cost);
    }
}

fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(BYTES_OF_TOKEN)
}
