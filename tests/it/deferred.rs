//! Tests of deferred tools: a call that had not begun when its process ended is made again, and one
//! that had begun is not.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use isolet::{InterruptHandle, Outcome, Sandbox, Tool, ToolContext, ToolError, ToolSpec, Value};

use crate::util::{self, Scratch};

/// Where a call of the tool ends with its process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    BeforeItBegins,
    AfterItBegan,
    Never,
}

/// What the tool has done, and the numbers of its calls.
#[derive(Clone, Default)]
struct Done {
    calls: Arc<Mutex<Vec<u64>>>,
    effects: Arc<AtomicUsize>,
    session: Arc<Mutex<Option<InterruptHandle>>>,
}

impl Done {
    fn kill(&self) {
        self.session.lock().unwrap().take().unwrap().kill();
    }

    fn call(&self, ends: Ends, cx: &ToolContext) -> Result<Value, ToolError> {
        self.calls.lock().unwrap().push(cx.call_id());
        if ends == Ends::BeforeItBegins {
            self.kill();
        }
        cx.begin()?;
        if ends == Ends::AfterItBegan {
            self.kill();
        }
        self.effects.fetch_add(1, Ordering::SeqCst);
        Ok("sent".into())
    }

    fn sandbox(&self, ends: Ends) -> Sandbox {
        let done = self.clone();
        // It blocks, so that nothing cancels it.
        let send =
            Tool::from_blocking_handler(ToolSpec::new("send"), move |_, cx| done.call(ends, &cx));
        util::builder().tool(send.deferred()).build().unwrap()
    }
}

const PROGRAM: &str = "
print('before')
try: print(send())
except CallInterrupted as error: print(error)
";

/// Records a program whose process ends during the call.
async fn ended(done: &Done, ends: Ends, journal: &Path) {
    let mut session = done.sandbox(ends).record(journal).await.unwrap();
    *done.session.lock().unwrap() = Some(session.interrupt_handle());
    let _ = session.run(PROGRAM).await;
}

async fn goes_on(done: &Done, journal: &Path) -> String {
    let mut session = done.sandbox(Ends::Never).resume(journal).await.unwrap();
    let execution = session.go_on().await.unwrap().unwrap();
    assert!(matches!(execution.outcome(), Outcome::Completed(_)), "{execution:?}");
    execution.stdout().to_owned()
}

#[tokio::test]
async fn a_call_that_had_not_begun_is_made_again_once() {
    let (scratch, done) = (Scratch::new("deferred"), Done::default());
    let journal = scratch.path().join("run.journal");
    ended(&done, Ends::BeforeItBegins, &journal).await;
    assert_eq!(done.effects.load(Ordering::SeqCst), 0, "a session that has ended does nothing");
    for _ in 0..2 {
        assert_eq!(goes_on(&done, &journal).await, "before\nsent\n");
        assert_eq!(done.effects.load(Ordering::SeqCst), 1);
    }
    let calls = done.calls.lock().unwrap().clone();
    assert!(calls.len() == 2 && calls[0] == calls[1], "{calls:?}");
}

#[tokio::test]
async fn a_call_that_had_begun_is_not_made_again() {
    let (scratch, done) = (Scratch::new("deferred"), Done::default());
    let journal = scratch.path().join("run.journal");
    ended(&done, Ends::AfterItBegan, &journal).await;
    for _ in 0..2 {
        let printed = goes_on(&done, &journal).await;
        assert!(printed.starts_with("before\nthe call of send() was under way"), "{printed}");
    }
    assert_eq!(done.calls.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_deferred_tool_begins_in_a_session_that_is_not_recorded_as_well() {
    let done = Done::default();
    let mut session = done.sandbox(Ends::Never).session().await.unwrap();
    assert_eq!(session.run("send()").await.unwrap().value(), Some(&"sent".into()));
}
