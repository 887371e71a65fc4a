//! Tests of the names that a run bound, with the repr of their values.

use crate::util::{exec, run, session};

fn names(execution: &isolet::Execution) -> Vec<&str> {
    let mut names: Vec<&str> =
        execution.locals().iter().map(|variable| variable.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn new_and_rebound_names_are_listed_and_others_are_not() {
    let mut session = session().await;
    let execution = exec(&mut session, "x = 1\ny = [1]\ndef f(): pass").await;
    assert_eq!(names(&execution), ["f", "x", "y"]);
    let execution = exec(&mut session, "x = 2\nz = 3\ny.append(2)").await;
    assert_eq!(names(&execution), ["x", "z"]);
    assert_eq!(names(&exec(&mut session, "x + z").await), [""; 0]);
    assert_eq!(names(&exec(&mut session, "del x").await), [""; 0]);
}

#[tokio::test]
async fn private_names_and_modules_are_left_out() {
    let execution =
        run("import os, json as j\nfrom math import pi\n_hidden = __very = 1\nx = 1").await;
    assert_eq!(names(&execution), ["pi", "x"]);
}

#[tokio::test]
async fn each_has_its_type_and_repr() {
    let code = "import decimal\nclass A:\n    def __repr__(self): return 'an A'\na = A()\n\
                d = decimal.Decimal('1.5')\ns = 'it\\'s'";
    let execution = run(code).await;
    let of = |name: &str| {
        let variable = execution.locals().iter().find(|variable| variable.name == name);
        variable.map(|variable| (variable.type_name.as_str(), variable.repr.as_str()))
    };
    assert_eq!(of("a"), Some(("A", "an A")));
    assert_eq!(of("d"), Some(("decimal.Decimal", "Decimal('1.5')")));
    assert_eq!(of("s"), Some(("str", "\"it's\"")));
    assert_eq!(of("A"), Some(("type", "<class '__main__.A'>")));
}

#[tokio::test]
async fn a_long_repr_is_cut_after_500_characters() {
    let code = "x = 'a' * 600\ny = 'é' * 498\nz = list(range(10_000))\n\
                class A:\n    def __repr__(self): return 'b' * 501\na = A()";
    let execution = run(code).await;
    for variable in execution.locals() {
        let chars = variable.repr.chars().count();
        match variable.name.as_str() {
            "x" | "a" => assert_eq!((chars, variable.repr.ends_with("...")), (503, true)),
            "y" => assert_eq!(chars, 500),
            "z" => assert!(chars <= 503 && variable.repr.contains("..."), "{}", variable.repr),
            _ => {}
        }
    }
    assert_eq!(names(&execution), ["A", "a", "x", "y", "z"]);
}

#[tokio::test]
async fn they_are_told_when_the_run_raises_or_exits_too() {
    let execution = run("x = 1\n1/0").await;
    assert_eq!(names(&execution), ["x"]);
    assert_eq!(names(&run("x = 1\nraise SystemExit").await), ["x"]);
}

#[tokio::test]
async fn one_that_cannot_be_shown_hides_no_other() {
    let code = "class Bad:\n    def __repr__(self): raise KeyError('no')\n\
                class Worse:\n    def __repr__(self): raise SystemExit(9)\n\
                bad, worse, lone, good = Bad(), Worse(), '\\ud800', 1";
    let execution = exec(&mut session().await, code).await;
    let of = |name: &str| {
        let variable = execution.locals().iter().find(|variable| variable.name == name);
        variable.map(|variable| variable.repr.as_str())
    };
    assert_eq!(of("good"), Some("1"));
    assert_eq!(of("bad"), Some("<Bad object; repr raised KeyError: 'no'>"));
    assert_eq!(of("lone"), Some("'\\ud800'"));
}
