//! Tests of modules of tools: how the guest imports them, and when the host is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isolet::{
    ErrorKind, Limits, Param, Session, Tool, ToolError, ToolModule, ToolSpec, TypeHint, Value,
};

use crate::util::{builder, eval, exec, raised, root};

/// Makes a tool that returns its own name and its arguments.
fn told(spec: ToolSpec) -> Tool {
    Tool::from_handler(spec, |arguments, cx| async move {
        Ok(Value::List(vec![cx.tool_name().into(), arguments]))
    })
}

fn tools() -> Vec<Tool> {
    let query = || Param::new("query").hint(TypeHint::Str).doc("What to look for.");
    vec![
        told(ToolSpec::new("search_issues").doc("Finds issues.\n\nSlowly.").param(query())),
        told(ToolSpec::new("create_issue").doc("Opens an issue.").param(Param::new("title"))),
        told(ToolSpec::new("later").asynchronous()),
    ]
}

/// A module, and how often its tools were asked for.
fn counted(name: &str) -> (ToolModule, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let module = ToolModule::new(name, "Issues.", move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(tools()) }
    });
    (module, asked)
}

async fn with<const N: usize>(modules: [ToolModule; N]) -> Session {
    let builder = modules.into_iter().fold(builder(), isolet::SandboxBuilder::module);
    builder.build().unwrap().session().await.unwrap()
}

#[tokio::test]
async fn a_module_is_a_variable_and_can_be_imported() {
    let (module, asked) = counted("github");
    let mut session = with([module]).await;
    let code = "
found = ['github.search_issues', {'query': 'q'}]
results = [github.search_issues('q')]
import github as imported
assert imported is github
from github import search_issues, create_issue as create
results.append(search_issues(query='q'))
assert create(3) == ['github.create_issue', {'title': 3}]
from tools import github as third
import tools
assert third is tools.github is github
assert github.search_issues is github.search_issues is search_issues
results.append(await github.search_issues.aio('q'))
results += github.search_issues.map(['q', 'q'])
from github import *
results.append((lambda: search_issues('q'))())
assert await github.later() == ['github.later', {}] == await later()
results.append(tools.call('github', 'search_issues', {'query': 'q'}))
results.append(await tools.call.aio('github', 'search_issues', {'query': 'q'}))
results == [found] * 8 or results
";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(session.variables().await.unwrap().iter().all(|one| one.name != "github"));
}

#[tokio::test]
async fn the_tools_of_a_module_are_asked_for_when_it_is_used() {
    let ((first, first_asked), (second, second_asked)) = (counted("github"), counted("notion"));
    let mut session = with([first, second]).await;
    let asked = || [&first_asked, &second_asked].map(|count| count.load(Ordering::SeqCst));
    exec(&mut session, "import github; from tools import notion; help, github, notion").await;
    exec(&mut session, "hasattr(github, '_repr_html_'); print(github)\ngithub").await;
    assert!(session.get("github").await.is_err());
    let servers = Value::List(vec!["github".into(), "notion".into()]);
    assert_eq!(eval(&mut session, "import tools; tools.servers()").await, servers);
    assert_eq!(eval(&mut session, "github.__doc__").await, Value::from("Issues."));
    assert_eq!(asked(), [0, 0]);
    let names = ["create_issue", "later", "search_issues"].map(Value::from).to_vec();
    assert_eq!(eval(&mut session, "dir(github)").await, Value::List(names));
    assert_eq!(asked(), [1, 0]);
    let execution = exec(&mut session, "notion.create_issue(1); notion.search_issues").await;
    assert_eq!(execution.usage().tool_calls, 1);
    assert_eq!(asked(), [1, 1]);
}

#[tokio::test]
async fn a_module_of_the_standard_library_keeps_its_name() {
    let names = ["time", "json", "email", "js", "pyodide"];
    let mut session = with(names.map(|name| counted(name).0)).await;
    let code = "
import time, json, email, js, pyodide, tools, mcp_time, mcp_json
time.sleep(0); json.loads('1'); email.message_from_string(''); pyodide.code
assert mcp_time is tools.time is not time
assert 'time' in tools.servers()
assert mcp_json.search_issues('q')[0] == 'json.search_issues'
from tools import email as server
from mcp_email import create_issue
assert server.create_issue is create_issue
assert tools.search('find issues', server='time')[0]['name'] == 'mcp_time.search_issues'
mcp_js.__name__
";
    assert_eq!(eval(&mut session, code).await, Value::from("mcp_js"));
    let mut session = with([counted("time").0]).await;
    let exception = raised(&mut session, "time.sleep(1)").await;
    assert_eq!(exception.type_name, "NameError");
}

#[tokio::test]
async fn the_list_of_pythons_own_modules_is_that_of_the_guest() {
    let list = std::fs::read_to_string(root().join("src/data/tool/stdlib.txt")).unwrap();
    let names = Value::List(list.lines().map(Value::from).collect());
    let mut session = with([]).await;
    let guests = eval(&mut session, "import sys; sorted(sys.stdlib_module_names)").await;
    assert_eq!(guests, names, "write them to `src/data/tool/stdlib.txt`");
}

#[tokio::test]
async fn the_helper_makes_way_for_tools_of_its_name() {
    let tool = told(ToolSpec::new("tools"));
    let (module, _) = counted("github");
    let sandbox = builder().tool(tool).module(module).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "import mcp_tools; tools() == ['tools', {}] and mcp_tools.github is github";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
    let mut session = with([counted("tools").0]).await;
    let code = "import mcp_tools, tools
tools.create_issue(1)[0], mcp_tools.tools is tools";
    let expected = Value::List(vec!["tools.create_issue".into(), true.into()]);
    assert_eq!(eval(&mut session, code).await, expected);
    let mut session = with([]).await;
    assert_eq!(raised(&mut session, "import tools").await.type_name, "ModuleNotFoundError");
}

#[tokio::test]
async fn a_sandbox_with_modules_that_python_could_not_have_is_refused() {
    let cases: [(&[&str], &str); 3] = [
        (&["a b"], "`a b` cannot be a module's name, it is no Python identifier"),
        (&["github", "github"], "there are two modules of the name `github`"),
        (&["tool"], "there are a module and a tool of the name `tool`"),
    ];
    for (names, message) in cases {
        let modules = names.iter().map(|name| counted(name).0);
        let tool = told(ToolSpec::new("tool"));
        let builder = modules.fold(builder().tool(tool), isolet::SandboxBuilder::module);
        let error = builder.build().unwrap_err();
        assert_eq!((error.kind(), error.to_string().contains(message)), (ErrorKind::Config, true));
    }
}

#[tokio::test]
async fn what_is_missing_is_told_with_what_is_close_to_it() {
    let mut session = with([counted("github").0]).await;
    let cases = [
        (
            "github.search_issue",
            "AttributeError: module 'github' has no attribute 'search_issue'; close to it: \
             search_issues, create_issue",
        ),
        ("github.zzz", "AttributeError: module 'github' has no attribute 'zzz'"),
        (
            "import tools; tools.gitub",
            "AttributeError: module 'tools' has no attribute 'gitub'; close to it: github",
        ),
        (
            "tools.call('github', 'lator', {})",
            "AttributeError: module 'github' has no attribute 'lator'; close to it: later",
        ),
        ("tools.call('gitlab', 'x')", "ValueError: there is no server 'gitlab', there are github"),
        (
            "tools.search('x', server='gitlab')",
            "ValueError: there is no server 'gitlab', there are github",
        ),
        (
            "github.search_issues()",
            "TypeError: github.search_issues() missing 1 required positional argument: 'query'",
        ),
        (
            "github.search_issues(3)",
            "TypeError: github.search_issues() argument 'query' must be str, not int",
        ),
        (
            "tools.call('github', 'search_issues', {'q': 1})",
            "TypeError: github.search_issues() got an unexpected keyword argument 'q'",
        ),
    ];
    for (code, expected) in cases {
        assert_eq!(raised(&mut session, code).await.to_string(), expected, "{code}");
    }
    let exception = raised(&mut session, "from github import search_issue").await;
    assert_eq!(exception.type_name, "ImportError");
    assert!(exception.traceback.contains("search_issues"), "{}", exception.traceback);
    let hidden = "getattr(github, '__path__', 0), hasattr(github, 'nothing')";
    let absent = Value::List(vec![Value::Int(0), Value::Bool(false)]);
    assert_eq!(eval(&mut session, hidden).await, absent);
}

#[tokio::test]
async fn help_lists_the_functions_of_a_module_and_shows_one() {
    let mut session = with([counted("github").0]).await;
    let help = exec(&mut session, "help(github)").await.stdout().to_owned();
    let expected = "Help on ToolModule in github:

NAME
    github - Issues.

FUNCTIONS
    search_issues(query: str)
        Finds issues.
    create_issue(title)
        Opens an issue.
    async later()
";
    assert!(help.contains(expected.split_once("NAME").unwrap().1), "{help}");
    let help = exec(&mut session, "help(github.search_issues)").await.stdout().to_owned();
    let expected = "Help on function search_issues in module github:

search_issues(query: str)
    Finds issues.

    Slowly.

    Args:
        query: What to look for.
";
    assert!(help.contains(expected), "{help}");
    assert!(exec(&mut session, "help('json')").await.stdout().contains("JSON"));
}

#[tokio::test]
async fn tools_are_found_by_words_in_all_modules_or_one() {
    let failing = ToolModule::new("down", "", || async {
        Err(ToolError::new("ConnectionError", "the server is away"))
    });
    let mut session = with([counted("github").0, counted("notion").0, failing]).await;
    let code = "
import tools
def names(*args, **kwargs):
    return [found['name'] for found in tools.search(*args, **kwargs)]
assert names('find issues', limit=2) == ['github.search_issues', 'notion.search_issues']
assert names('create', server='notion') == ['notion.create_issue']
assert names('title', 'github') == ['github.create_issue']
assert names('weather') == [] and names('issue', limit=-1) == []
assert len(names('')) == 6 and len(names('', limit=10**9)) == 6
assert names('x' * 100_000) == []
assert await tools.search.aio('create', 'github') == tools.search('create', 'github')
tools.search('slowly')[0]
";
    let doc = "Finds issues.\n\nSlowly.\n\nArgs:\n    query: What to look for.";
    let expected = Value::dict([
        ("signature", "github.search_issues(query: str)"),
        ("doc", doc),
        ("name", "github.search_issues"),
    ]);
    assert_eq!(eval(&mut session, code).await, expected);
    let exception = raised(&mut session, "tools.search('x', server='down')").await;
    assert_eq!(exception.to_string(), "ConnectionError: the server is away");
}

#[tokio::test]
async fn a_module_that_fails_says_so_and_is_asked_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let module = ToolModule::new("github", "", move || {
        let nth = asked.fetch_add(1, Ordering::SeqCst);
        async move {
            match nth {
                0 => Err(ToolError::new("ConnectionError", "the server is away")),
                1 => Ok(vec![told(ToolSpec::new("a")), told(ToolSpec::new("a"))]),
                2 => Ok(vec![told(ToolSpec::new("a-b"))]),
                3 => panic!("broken"),
                _ => Ok(tools()),
            }
        }
    });
    let mut session = with([module]).await;
    let cases = [
        ("github.a", "ConnectionError: the server is away"),
        (
            "dir(github)",
            "ImportError: the module `github` cannot be used: there are two tools of the name `a`",
        ),
        (
            "from github import a",
            "ImportError: the module `github` cannot be used: `a-b` cannot be a tool's name, it \
             is no Python identifier",
        ),
        ("help(github)", "RuntimeError: github() failed inside: broken"),
    ];
    for (code, expected) in cases {
        assert_eq!(raised(&mut session, code).await.to_string(), expected, "{code}");
    }
    let found = eval(&mut session, "github.search_issues('q')[0]").await;
    assert_eq!(found, Value::from("github.search_issues"));
}

#[tokio::test]
async fn a_tool_error_can_be_caught_by_its_name() {
    let module = ToolModule::new("m", "", || async {
        let fail = |name: &'static str| {
            Tool::from_handler(ToolSpec::new(name.to_lowercase()), move |_, _| async move {
                Err(ToolError::new(name, "no"))
            })
        };
        Ok(["ToolError", "PermissionError", "TimeoutError", "OtherError"].map(fail).to_vec())
    });
    let mut session = with([module]).await;
    let code = "
import tools
caught = []
for function in (m.toolerror, m.permissionerror, m.timeouterror, m.othererror):
    try:
        function()
    except (ToolError, PermissionError, TimeoutError) as error:
        caught.append(repr(error))
    except RuntimeError as error:
        caught.append(type(error).__name__)
assert tools.ToolError is ToolError
caught
";
    let caught = ["ToolError('no')", "PermissionError('no')", "TimeoutError('no')", "OtherError"];
    let caught = Value::List(caught.map(Value::from).to_vec());
    assert_eq!(eval(&mut session, code).await, caught);
}

#[tokio::test]
async fn limits_of_a_module_s_tools_are_those_of_other_tools() {
    let module = ToolModule::new("m", "", || async {
        let once = told(ToolSpec::new("once")).max_calls(1);
        let spec = ToolSpec::new("slow");
        let slow = Tool::from_handler(spec, |_, _| std::future::pending());
        Ok(vec![once, slow.timeout(std::time::Duration::from_millis(10))])
    });
    let builder = builder().limits(Limits::default().max_tool_calls(5)).module(module);
    let mut session = builder.build().unwrap().session().await.unwrap();
    // What is asked about a module is no call.
    exec(&mut session, "for _ in range(100): vars(m).pop('once', 0); m.once").await;
    exec(&mut session, "m.once()").await;
    assert_eq!(
        raised(&mut session, "m.once()").await.to_string(),
        "RuntimeError: m.once() was called 1 times, the limit is 1"
    );
    assert_eq!(
        raised(&mut session, "m.slow()").await.to_string(),
        "TimeoutError: m.slow() took longer than 0.01 s"
    );
    let execution =
        session.run("for _ in range(9):\n  try: m.once()\n  except RuntimeError: 1").await;
    assert!(execution.unwrap().exception().is_none());
    let code = "for _ in range(9):\n  try: m.slow()\n  except TimeoutError: 1";
    let execution = session.run(code).await.unwrap();
    assert!(matches!(execution.outcome(), isolet::Outcome::Terminated(_)), "{execution:?}");
}

#[tokio::test]
async fn names_that_a_guest_makes_up_are_refused() {
    let mut session = with([counted("github").0]).await;
    let code = "
call = next(cell for cell in [__import__('sys').modules['tools'].search.__globals__['tools']]).call
refused = []
for name in ['github.nothing', 'github.', '.', '.search_issues', 'github.search_issues.x', '?x',
             'github.?x', 'github.?', '?.?names', 'time.?names', 'github', 'a' * 4000]:
    shown = name if len(name) <= 100 else name[:100] + '...'
    try:
        call(name, {})
    except NameError as error:
        refused.append(str(error) == f\"there is no tool '{shown}'\")
for name, arguments in [('github.?names', {'x': 1}), ('github.?tool', {}), ('?search', {}),
                        ('github.?tool', {'name': 3}), ('?search', {'query': 1})]:
    try:
        call(name, arguments)
    except TypeError:
        refused.append(True)
assert call('github.?tool', {'name': 'github.search_issues'}) is None
refused
";
    let refused = eval(&mut session, code).await;
    assert_eq!(refused, Value::List(vec![Value::Bool(true); 17]));
    // A call loads its module, because a session that was saved may have functions of it.
    let mut session = with([counted("github").0]).await;
    let call =
        |name| format!("import tools; tools.search.__globals__['tools'].call('{name}', {{}})");
    for (name, refused) in [
        ("github.nothing", "NameError"),
        ("other.create_issue", "NameError"),
        ("github.create_issue", "TypeError"),
    ] {
        assert_eq!(raised(&mut session, call(name)).await.type_name, refused, "{name}");
    }
}

#[tokio::test]
async fn thousands_of_tools_are_sent_one_by_one() {
    let module = ToolModule::new("many", "", || async {
        let spec = |n: i64| ToolSpec::new(format!("tool_{n}")).doc("x".repeat(10_000));
        Ok((0..3000).map(|n| told(spec(n))).collect())
    });
    let mut session = with([module]).await;
    let code = "
import many, tools
assert len(dir(many)) == 3000
made = set(vars(many))
many.tool_7(), many.tool_2999(), tools.search('tool 1234')[0]['name']
sorted(set(vars(many)) - made)
";
    let made = Value::List(vec!["tool_2999".into(), "tool_7".into()]);
    assert_eq!(eval(&mut session, code).await, made);
}

#[tokio::test]
async fn a_run_s_time_stands_still_while_a_module_s_tools_are_asked_for() {
    let limit = std::time::Duration::from_secs(1);
    let module = ToolModule::new("slow", "", move || async move {
        tokio::time::sleep(limit * 2).await;
        Ok(tools())
    });
    let builder = builder().limits(Limits::default().max_run_time(limit)).module(module);
    let mut session = builder.build().unwrap().session().await.unwrap();
    let execution = exec(&mut session, "slow.search_issues('q')").await;
    assert!(execution.usage().host_time >= limit, "{execution:?}");
}

#[tokio::test]
async fn a_module_whose_version_has_changed_is_loaded_again_when_a_function_is_missing() {
    let (version, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (number, told_version, count) =
        (Arc::clone(&version), Arc::clone(&version), Arc::clone(&asked));
    let module = ToolModule::new("m", "", move || {
        count.fetch_add(1, Ordering::SeqCst);
        let newest = number.load(Ordering::SeqCst);
        async move { Ok((0..=newest).map(|n| told(ToolSpec::new(format!("f{n}")))).collect()) }
    });
    let module = module.version(move || {
        let version = told_version.load(Ordering::SeqCst) as u64;
        async move { version }
    });
    let mut session = with([module]).await;
    let missing = "[hasattr(m, name) for name in ('f0', 'f1', 'f2')], dir(m)";
    let names = |names: &[&str]| Value::List(names.iter().map(|name| (*name).into()).collect());
    let has = |known: usize| Value::List((0..3).map(|at| Value::Bool(at <= known)).collect());
    let seen = |known, all: &[&str]| Value::List(vec![has(known), names(all)]);
    assert_eq!(eval(&mut session, missing).await, seen(0, &["f0"]));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    version.store(1, Ordering::SeqCst);
    // What is known needs no look at the version.
    eval(&mut session, "m.f0()").await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(
        eval(&mut session, "m.f1()").await,
        Value::List(vec!["m.f1".into(), Value::Dict(vec![])])
    );
    assert_eq!(eval(&mut session, missing).await, seen(1, &["f0", "f1"]));
    version.store(2, Ordering::SeqCst);
    assert_eq!(eval(&mut session, "tools.search('f2')[0]['name']").await, "m.f2".into());
    assert_eq!(eval(&mut session, missing).await, seen(2, &["f0", "f1", "f2"]));
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}
