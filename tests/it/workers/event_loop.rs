//! Tests of sessions whose workers are read by a runtime of the engine's owner.

use std::process::Command;
use std::sync::mpsc;

use isolet::{
    Cell, Engine, Isolation, Mount, Outcome, Param, Permissions, Sandbox, Session, SessionState,
    Stdin, Termination, Tool, ToolSpec, Value,
};
use tokio::runtime::{Builder, Runtime};

use crate::util::{LONGEST, Scratch, engine_builder, eval, output, processes};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn engine(runtime: &Runtime) -> Engine {
    let builder = engine_builder().isolation(Isolation::Process);
    builder.event_loop(runtime.handle().clone()).unwrap().build().unwrap()
}

/// Runs code in the session that asks the host for something of each kind.
async fn use_everything(session: &mut Session) {
    let code = "
import sys
lines = []
for number in range(300):
    print('line', number)
    if number % 100 == 0:
        lines += [twice(number), open('/data/text').read(), input()]
sys.stderr.write('x' * 200_000)
lines
";
    let cell = Cell::new(code).stdin(Stdin::from_bytes("a\nb\nc\n"));
    let execution = session.run(cell).await.unwrap();
    let items = [0, 200, 400].into_iter().zip(["a", "b", "c"]);
    let items =
        items.flat_map(|(twice, line)| [Value::from(twice), "of the host".into(), line.into()]);
    assert_eq!(execution.value(), Some(&items.collect::<Vec<_>>().into()), "{execution:?}");
    let lines: Vec<String> = (0..300).map(|number| format!("line {number}")).collect();
    assert_eq!(execution.stdout().lines().collect::<Vec<_>>(), lines);
    assert_eq!(execution.stderr().len(), 200_000);
}

fn sandbox(engine: &Engine, scratch: &Scratch) -> Sandbox {
    scratch.file("text", "of the host");
    let spec = ToolSpec::new("twice").param(Param::new("x"));
    let twice = Tool::from_handler(spec, |args, _| async move {
        let Some(Value::Int(x)) = args.get("x") else { unreachable!("the test passes a number") };
        Ok(Value::from(2 * x))
    });
    let mount = Mount::read_only(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    Sandbox::builder(engine).permissions(permissions).tool(twice).build().unwrap()
}

#[test]
fn sessions_that_an_event_loop_reads_do_what_others_do() {
    let runtime = runtime();
    let scratch = Scratch::new("event-loop");
    let sandbox = sandbox(&engine(&runtime), &scratch);
    // On the runtime itself, and on another thread.
    let mut session = isolet::blocking::block_on(sandbox.session()).unwrap();
    isolet::blocking::block_on(use_everything(&mut session));
    let used = runtime.spawn(async move {
        let mut sessions = vec![session];
        for _ in 0..4 {
            sessions.push(sandbox.session().await.unwrap());
        }
        for session in &mut sessions {
            use_everything(session).await;
            for number in 0..50 {
                assert_eq!(eval(session, &*format!("{number} + 1")).await, Value::from(number + 1));
            }
        }
    });
    runtime.block_on(used).unwrap();
}

#[test]
fn the_end_of_a_worker_that_an_event_loop_reads_is_reported() {
    let runtime = runtime();
    let sandbox = Sandbox::builder(&engine(&runtime)).build().unwrap();
    runtime.block_on(async {
        let mut session = sandbox.session().await.unwrap();
        let worker = processes(&session).0.to_string();
        let code = "import sys\nsys.stdout.write('last\\n')\nwhile True: pass";
        let mut run = session.run_streaming(code);
        assert_eq!(output(run.next().await.unwrap()).bytes, b"last\n");
        Command::new("kill").args(["-s", "KILL", &worker]).output().unwrap();
        let execution = run.finish().await.unwrap();
        let Outcome::Terminated(Termination::Died { reason }) = execution.outcome() else {
            panic!("{execution:?}");
        };
        assert!(reason.contains("SIGKILL"), "{reason}");
        assert_eq!(session.state(), SessionState::Died);
    });
}

#[test]
fn a_session_outlives_the_event_loop_that_read_its_worker() {
    let first = runtime();
    let scratch = Scratch::new("event-loop-ended");
    let engine = engine(&first);
    let sandbox = sandbox(&engine, &scratch);
    let mut session = first.block_on(sandbox.session()).unwrap();
    drop(first);
    isolet::blocking::block_on(async {
        use_everything(&mut session).await;
        use_everything(&mut sandbox.session().await.unwrap()).await;
    });
}

#[test]
fn a_guest_that_waits_for_its_reader_holds_up_no_other_session_of_its_event_loop() {
    let runtime = runtime();
    let sandbox = Sandbox::builder(&engine(&runtime)).build().unwrap();
    let (done, is_done) = mpsc::channel();
    runtime.spawn(async move {
        let mut waiting = sandbox.session().await.unwrap();
        let mut other = sandbox.session().await.unwrap();
        // In small writes and in large ones, each more than fits into what holds output.
        for code in ["for n in range(200_000): print('a line of text')", "print('x' * 9_000_000)"] {
            let mut run = waiting.run_streaming(code);
            let mut bytes = output(run.next().await.unwrap()).bytes.len();
            for number in 0..300 {
                assert_eq!(eval(&mut other, &*format!("{number}")).await, Value::from(number));
            }
            while let Some(event) = run.next().await {
                bytes += output(event).bytes.len();
            }
            done.send(bytes).unwrap();
        }
    });
    for bytes in [200_000 * 15, 9_000_001] {
        assert_eq!(is_done.recv_timeout(LONGEST), Ok(bytes));
    }
}
