//! Tests of what a guest displays: in every format, in order with the output, within the limits.

use isolet::{Display, Limits, MimeData, RunEvent, Session};

use crate::util::{exec, sandbox, session};

/// A 1x1 picture.
const PNG: &str = "b'\\x89PNG\\r\\n\\x1a\\n' + bytes(20)";

fn names(display: &Display) -> Vec<&str> {
    display.formats().map(|(name, _)| name).collect()
}

fn text<'a>(display: &'a Display, format: &str) -> &'a str {
    display.get(format).and_then(MimeData::as_str).unwrap_or_default()
}

async fn displays(session: &mut Session, code: &str) -> Vec<Display> {
    exec(session, code).await.displays().to_vec()
}

#[tokio::test]
async fn an_object_is_displayed_in_each_format_that_it_has_a_method_for() {
    let code = format!(
        "
class Rich:
    def _repr_html_(self): return '<b>é</b>'
    def _repr_png_(self): return {PNG}, {{'width': 1}}
    def _repr_svg_(self): return None
    def _repr_latex_(self): raise NotImplementedError
    def _repr_json_(self): return {{'a': [1, None]}}
    def __repr__(self): return 'rich'
display(Rich(), 'plain')"
    );
    let found = displays(&mut session().await, &code).await;
    let [rich, plain] = &found[..] else { panic!("{found:?}") };
    assert_eq!(names(rich), ["text/html", "image/png", "application/json", "text/plain"]);
    assert_eq!(text(rich, "text/html"), "<b>é</b>");
    assert_eq!(text(rich, "application/json"), r#"{"a": [1, null]}"#);
    assert_eq!(text(rich, "text/plain"), "rich");
    assert_eq!(rich.get("image/png").unwrap().as_bytes().len(), 28);
    assert!(!rich.is_result());
    assert_eq!((names(plain), text(plain, "text/plain")), (vec!["text/plain"], "'plain'"));
}

#[tokio::test]
async fn a_last_expression_is_displayed_if_there_is_more_to_see_than_its_repr() {
    let mut session = session().await;
    for plain in ["1", "'a'", "[1, 2]", "object()", "None", "x = 1"] {
        assert_eq!(displays(&mut session, plain).await, []);
    }
    let code = "
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'text/markdown': '# hi', 'text/plain': 'hi', 'application/x+json': {'b': 1}}, {}
    __repr__ = None
Bundle()";
    let found = displays(&mut session, code).await;
    let [bundle] = &found[..] else { panic!("{found:?}") };
    assert!(bundle.is_result());
    assert_eq!(names(bundle), ["text/markdown", "text/plain", "application/x+json"]);
    assert_eq!(
        (text(bundle, "text/plain"), text(bundle, "application/x+json")),
        ("hi", r#"{"b": 1}"#)
    );
}

#[tokio::test]
async fn a_method_that_fails_leaves_its_format_out_and_says_why() {
    let code = "
class Broken:
    def _repr_html_(self): return 1 / 0
    def _repr_markdown_(self): return '*here*'
    def _repr_svg_(self): return object()
    def __getattr__(self, name): return lambda *args, **kwargs: 'anything'
Broken()";
    let execution = exec(&mut session().await, code).await;
    assert_eq!(names(&execution.displays()[0]), ["text/markdown", "text/plain"]);
    assert!(execution.stderr().ends_with("ZeroDivisionError: division by zero\n"));
}

#[tokio::test]
async fn displays_and_output_come_in_order() {
    let mut session = session().await;
    let code = "print('one')\ndisplay(1)\nprint('twö')\ndisplay(2)\nprint('three')";
    let mut run = session.run_streaming(code);
    let mut seen = String::new();
    while let Some(event) = run.next().await {
        match event {
            RunEvent::Output(chunk) => seen += &String::from_utf8(chunk.bytes).unwrap(),
            RunEvent::Display(display) => {
                seen.extend(["[", text(&display, "text/plain"), "]"]);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, "one\n[1]twö\n[2]three\n");
    let execution = run.finish().await.unwrap();
    let at = |display: &Display| display.stdout_bytes_before();
    assert_eq!(execution.displays().iter().map(at).collect::<Vec<_>>(), [4, 9]);
}

#[tokio::test]
async fn what_is_beyond_the_limits_is_counted_and_the_run_goes_on() {
    let limits = Limits::default().max_displays(3).max_display_bytes(10_000);
    let mut session = sandbox(limits).session().await.unwrap();
    let code = "
display({'text/plain': 'x' * 20_000}, raw=True)
for n in range(5): display(n)
'done'";
    let execution = exec(&mut session, code).await;
    assert_eq!(execution.displays().len(), 3);
    assert_eq!(execution.truncated().displays, 3);
    assert!(execution.truncated().is_any());
    // The next run begins anew.
    assert_eq!(displays(&mut session, "display(1)").await.len(), 1);
}

#[tokio::test]
async fn they_are_kept_when_the_run_fails_and_when_it_is_stopped() {
    let limits = Limits::default().max_run_time(std::time::Duration::from_secs(2));
    let mut session = sandbox(limits).session().await.unwrap();
    for end in ["1 / 0", "while True: pass", "import os; os._exit(3)"] {
        let execution = session.run(format!("display('kept')\n{end}")).await.unwrap();
        assert_eq!(execution.displays().len(), 1, "{execution:?}");
        if !execution.session_alive() {
            break;
        }
    }
}

#[tokio::test]
async fn a_guest_that_goes_round_the_glue_displays_nothing_that_is_none() {
    let mut session = session().await;
    let code = "
import gc, marshal
from pyodide.ffi import JsProxy
gc.unfreeze()
held = [o for h in gc.get_objects() for o in gc.get_referents(h) if type(o) is type(display) and 'bridge' in o.__globals__]
bridge = display.__globals__['bridge']
def send(data):
    bridge.display(id(data) + bytes.__basicsize__ - 1, len(data))
for value in (1, [], [False], [False, {}], [False, {'no format': 'x'}], [1, {'a/b': 'x'}],
              [False, {'a/b': 1}], [False, {'a/b': ['x']}], [False, {b'a/b': 'x'}]):
    send(marshal.dumps(value, 2))
send(b'')
send(b'\\xff' * 100)
bridge.display(2**32 - 10, 5)
";
    let execution = session.run(code).await.unwrap();
    assert_eq!(execution.displays(), []);
    assert_eq!(execution.truncated().displays, 11);
    assert_eq!(displays(&mut session, "display(1)").await.len(), 1);
}

#[tokio::test]
async fn programs_for_notebooks_find_the_display_module_of_ipython() {
    let code = format!(
        "
from IPython.display import HTML, Image, JSON, Markdown, Math, SVG, clear_output, display
import IPython
assert IPython.get_ipython() is None
clear_output()
display(HTML('<p>hi</p>'), Markdown('*a*'), Math('x^2'), SVG('<svg/>'), JSON({{'a': 1}}))
open('p.png', 'wb').write({PNG})
display(Image('p.png'))
Image(data=b'\\xff\\xd8\\xff')"
    );
    let found = displays(&mut session().await, &code).await;
    let first: Vec<&str> = found.iter().map(|display| names(display)[0]).collect();
    let expected = [
        "text/html",
        "text/markdown",
        "text/latex",
        "image/svg+xml",
        "application/json",
        "image/png",
        "image/jpeg",
    ];
    assert_eq!(first, expected);
    assert_eq!(text(&found[2], "text/latex"), "$\\displaystyle x^2$");
}
