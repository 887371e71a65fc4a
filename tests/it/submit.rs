//! Tests of `SUBMIT`: a run submits its result, field by field.

use isolet::{Error, ErrorKind, Outcome, Param, Session, Tool, TypeHint, Value};

use crate::util::{builder, eval, exec, raised, session};

async fn with_fields() -> Session {
    let fields = [
        Param::new("answer").hint(TypeHint::Str),
        Param::new("score").hint(TypeHint::Float).default_value(1.0),
    ];
    builder().submit(fields).build().unwrap().session().await.unwrap()
}

fn fields(answer: &str, score: f64) -> Value {
    Value::Dict(vec![("answer".into(), answer.into()), ("score".into(), score.into())])
}

#[tokio::test]
async fn a_submission_ends_the_run_with_its_fields_in_their_order() {
    let mut session = with_fields().await;
    let cases = [
        ("SUBMIT('a', 0.5)", fields("a", 0.5)),
        ("SUBMIT(score=0.5, answer='a')", fields("a", 0.5)),
        ("SUBMIT('a')", fields("a", 1.0)),
        (
            "def f():\n    for i in range(9):\n        SUBMIT(str(i))\nf()\nraise SystemExit",
            fields("0", 1.0),
        ),
        (
            "async def f(): SUBMIT('task')\nimport asyncio\nawait asyncio.gather(f())",
            fields("task", 1.0),
        ),
    ];
    for (code, submitted) in cases {
        let execution = session.run(code).await.unwrap();
        assert_eq!(execution.outcome(), &Outcome::Submitted(submitted.clone()), "{code}");
        assert_eq!(execution.value(), Some(&submitted));
        assert!(execution.session_alive());
        assert_eq!(execution.into_result().unwrap(), submitted);
    }
}

#[tokio::test]
async fn what_runs_before_and_on_the_way_out_is_kept() {
    let mut session = with_fields().await;
    let code = "
print('before')
x = 1
try:
    SUBMIT('done')
except Exception:
    print('not reached')
finally:
    print('cleanup')
print('not reached')
";
    let execution = session.run(code).await.unwrap();
    assert_eq!(execution.outcome(), &Outcome::Submitted(fields("done", 1.0)));
    assert_eq!(execution.stdout(), "before\ncleanup\n");
    assert_eq!(eval(&mut session, "x").await, Value::Int(1));
}

#[tokio::test]
async fn the_first_submission_counts_even_if_the_guest_goes_on() {
    let mut session = with_fields().await;
    let code = "
try: SUBMIT('first')
except: pass
try: SUBMIT('second')
except: pass
1 / 0
";
    let execution = session.run(code).await.unwrap();
    assert_eq!(execution.outcome(), &Outcome::Submitted(fields("first", 1.0)));
    // A submission belongs to its run only.
    assert_eq!(exec(&mut session, "40 + 2").await.value(), Some(&Value::Int(42)));
}

#[tokio::test]
async fn wrong_fields_are_type_errors_and_submit_nothing() {
    let mut session = with_fields().await;
    let cases = [
        ("SUBMIT()", "SUBMIT() missing 1 required positional argument: 'answer'"),
        ("SUBMIT('a', 1.0, 2)", "SUBMIT() takes from 1 to 2 positional arguments but 3 were given"),
        ("SUBMIT(answer='a', extra=1)", "SUBMIT() got an unexpected keyword argument 'extra'"),
        ("SUBMIT(3)", "SUBMIT() argument 'answer' must be str, not int"),
        ("SUBMIT('a', 'high')", "SUBMIT() argument 'score' must be float, not str"),
        (
            "SUBMIT(object())",
            "SUBMIT() cannot be called with this 'answer': a value of type object cannot cross to the host",
        ),
    ];
    for (code, message) in cases {
        let exception = raised(&mut session, code).await;
        assert_eq!(
            (exception.type_name.as_str(), exception.message.as_str()),
            ("TypeError", message)
        );
    }
}

#[tokio::test]
async fn there_is_no_submit_until_it_is_asked_for_and_it_can_change() {
    let mut session = session().await;
    assert_eq!(raised(&mut session, "SUBMIT(1)").await.type_name, "NameError");
    session.set_submit([Param::new("a")]).await.unwrap();
    let submitted = |name: &str| Value::Dict(vec![(name.into(), Value::List(vec![1.into()]))]);
    let execution = session.run("SUBMIT({1})").await.unwrap();
    assert_eq!(execution.outcome(), &Outcome::Submitted(submitted("a")));
    session.set_submit([Param::new("b")]).await.unwrap();
    let execution = session.run("SUBMIT(b=(1,))").await.unwrap();
    assert_eq!(execution.outcome(), &Outcome::Submitted(submitted("b")));
}

#[tokio::test]
async fn submit_is_whatever_function_the_namespace_holds() {
    let mut session = with_fields().await;
    exec(&mut session, "saved = SUBMIT").await;
    session.set_submit([Param::new("total").hint(TypeHint::Int)]).await.unwrap();
    let total = Outcome::Submitted(Value::Dict(vec![("total".into(), 3.into())]));
    let answer = Outcome::Submitted(fields("a", 1.0));
    let steps = [
        ("SUBMIT(3)", &total),
        ("saved('a')", &answer),
        ("SUBMIT, other = saved, SUBMIT\nSUBMIT('a')", &answer),
        ("other(total=3)", &total),
        ("del SUBMIT\nsaved('a')", &answer),
        ("def SUBMIT(x): saved(str(x))\nSUBMIT('a')", &answer),
    ];
    for (code, outcome) in steps {
        assert_eq!(session.run(code).await.unwrap().outcome(), outcome, "{code}");
    }
    let wrong = raised(&mut session, "other('three')").await;
    assert_eq!(wrong.message, "SUBMIT() argument 'total' must be int, not str");
    let wrong = raised(&mut session, "saved(3)").await;
    assert_eq!(wrong.message, "SUBMIT() argument 'answer' must be str, not int");
    assert_eq!(raised(&mut session, "del SUBMIT\nSUBMIT('a')").await.type_name, "NameError");
    // The same fields again are the same form.
    session.set_submit([Param::new("total").hint(TypeHint::Int)]).await.unwrap();
    assert_eq!(session.run("SUBMIT(3)").await.unwrap().outcome(), &total);
    assert_eq!(session.run("other(3)").await.unwrap().outcome(), &total);
}

#[tokio::test]
async fn submit_can_have_another_name() {
    let submitted = |name: &str, value: Value| Outcome::Submitted(Value::dict([(name, value)]));
    let fields = [Param::new("answer").hint(TypeHint::Str)];
    let sandbox = builder().submit_as("final_answer", fields).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let execution = session.run("final_answer('a')\nprint('not reached')").await.unwrap();
    assert_eq!(execution.outcome(), &submitted("answer", "a".into()));
    assert_eq!(execution.stdout(), "");
    assert_eq!(raised(&mut session, "SUBMIT('a')").await.type_name, "NameError");
    for (code, message) in [
        ("final_answer(3)", "final_answer() argument 'answer' must be str, not int"),
        ("final_answer()", "final_answer() missing 1 required positional argument: 'answer'"),
        (
            "final_answer(object())",
            "final_answer() cannot be called with this 'answer': a value of type object cannot \
             cross to the host",
        ),
    ] {
        assert_eq!(raised(&mut session, code).await.message, message);
    }
    // A function is changed by its name, and added under another one.
    session.set_submit_as("final_answer", [Param::new("total")]).await.unwrap();
    session.set_submit([Param::new("rest").var_positional()]).await.unwrap();
    let execution = session.run("final_answer(total=3)").await.unwrap();
    assert_eq!(execution.outcome(), &submitted("total", 3.into()));
    let execution = session.run("SUBMIT(1, 2)").await.unwrap();
    assert_eq!(execution.outcome(), &submitted("rest", Value::List(vec![1.into(), 2.into()])));
    assert_eq!(eval(&mut session, "final_answer.__name__").await, "final_answer".into());
}

#[tokio::test]
async fn help_shows_the_fields() {
    let mut session = with_fields().await;
    let help = exec(&mut session, "help(SUBMIT)").await;
    assert_eq!(
        help.stdout(),
        "Help on function SUBMIT in module __main__:\n\nSUBMIT(answer: str, score: float = 1.0)\n    \
         Ends the run and hands these values to the host as its result.\n\n"
    );
}

#[tokio::test]
async fn fields_that_python_could_not_define_are_refused() {
    let refusal = |error: Error| (error.kind(), error.to_string());
    let expected = (
        ErrorKind::Config,
        "`a b` cannot be a parameter of `SUBMIT`, it is no Python identifier".to_owned(),
    );
    let error = builder().submit([Param::new("a b")]).build().unwrap_err();
    assert_eq!(refusal(error), expected);
    let tool = Tool::from_fn("answer", |(): (), _| async { Ok(()) });
    let error = builder().tool(tool).submit_as("answer", []).build().unwrap_err();
    let expected_twice = "there is a tool of the name `answer`, which is to submit".to_owned();
    assert_eq!(refusal(error), (ErrorKind::Config, expected_twice));
    let mut session = session().await;
    let error = session.set_submit([Param::new("a b")]).await.unwrap_err();
    assert_eq!(refusal(error), expected);
}
