//! Tests of cells as `IPython` reads them: their indentation, its commands, history and modules.
//! What is expected was compared with `IPython` 9.18, but for what its shell would have done.

use isolet::{Cell, Execution, Limits, Session, Syntax};

use crate::util::{exec, raised, sandbox, session};

const TIMES: &str = "TIMES\n";

fn cell(code: &str) -> Cell {
    Cell::new(code).syntax(Syntax::Ipython)
}

/// What a cell shows: its output without times, displays, its value, and the end of its error.
fn shown(execution: &Execution) -> String {
    let lines = execution.stdout().split_inclusive('\n');
    let lines = lines.filter(|line| !line.starts_with("Wall time: "));
    let lines = lines.map(|line| if line.starts_with("CPU times: user ") { TIMES } else { line });
    let mut parts: Vec<String> = lines.map(str::to_owned).collect();
    for display in execution.displays() {
        let (name, data) = display.formats().next().unwrap();
        parts.push(format!("[{name}] {}\n", data.as_str().unwrap_or("bytes")));
    }
    if !execution.stderr().is_empty() {
        parts.push(format!("stderr: {}", execution.stderr()));
    }
    let is_shown = !execution.displays().iter().any(isolet::Display::is_result);
    match (execution.exception(), execution.repr()) {
        (Some(exception), _) => {
            parts.push(format!("{}: {}", exception.type_name, exception.message));
        }
        (None, Some(repr)) if repr != "None" && is_shown => parts.push(repr.to_owned()),
        _ => {}
    }
    parts.concat()
}

/// Runs cells one after another in one session, and compares what each of them shows.
async fn check(session: &mut Session, cells: &[(&str, &str)]) {
    for (code, expected) in cells {
        let execution = session.run(cell(code)).await.unwrap();
        assert_eq!(shown(&execution), *expected, "{code}\n{}", execution.stderr());
    }
}

#[tokio::test]
async fn a_cell_may_be_indented_as_a_whole() {
    let cells = [
        ("    x = 1\n    x", "1"),
        ("\n\n    if x:\n        y = 2\n    y", "2"),
        ("\tx\n", "1"),
        ("    # a comment\n  x", "1"),
        ("    x = 5\ny = x\ny", "5"),
        ("  x = '''a\n    b\n  c'''\n  x", r"'a\n  b\nc'"),
        ("x = '''a\n  b'''\nx", r"'a\n  b'"),
        (">>> for n in range(2):\n...     x = n\n>>> x", "1"),
        ("In [3]: x = 7\n   ...: x", "7"),
        ("x\n    y", "IndentationError: unexpected indent (<cell>, line 2)"),
    ];
    check(&mut session().await, &cells).await;
    let plain = raised(&mut session().await, "  1").await;
    assert_eq!(plain.type_name, "IndentationError");
}

#[tokio::test]
async fn commands_of_ipython_do_what_they_can() {
    let cells = [
        ("%time sum(range(10))", "TIMES\n45"),
        ("%time x = 1", "TIMES\n"),
        ("%time x;", "TIMES\n"),
        ("y = %time x + 1\ny", "TIMES\n2"),
        ("%%time\nx = 3\nx", "TIMES\n3"),
        ("%%time\nx;", "TIMES\n"),
        ("import asyncio\n%time await asyncio.sleep(0, 7)", "TIMES\n7"),
        ("%%time\nawait asyncio.sleep(0, 8)", "TIMES\n8"),
        ("%%time x\ny", "UsageError: Can't use statement directly after '%%time'!"),
        ("def f(n):\n    k = n\n    %time k + 1\nf(2)", "TIMES\n"),
        ("t = %timeit -q -o -n 3 -r 2 x\nt.loops, t.repeat, len(t.all_runs)", "(3, 2, 2)"),
        ("%%timeit -q -n 2 -r 1 n = 5\nn += 1", ""),
        ("%timeit -q -n 1 -r 1 missing", "NameError: name 'missing' is not defined"),
        ("%pwd", "'/home/user'"),
        ("%cd /tmp", "/tmp\n"),
        ("%cd -q -\n%pwd", "'/home/user'"),
        ("%cd nowhere", "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere'"),
        ("%%writefile a.py\nimport sys\nprint(sys.argv, __name__)\nk = 7", "Writing a.py\n"),
        ("%%writefile a.py\nimport sys\nprint(sys.argv)\nk = 8", "Overwriting a.py\n"),
        ("%%file -a a.py\nprint(k)", "Appending to a.py\n"),
        ("name = 'a'\n%run $name 1 '2 3'\nk", "['a.py', '1', '2 3']\n8\n8"),
        ("%run {name}.py", "['a.py']\n8\n"),
        ("%run nofile", "FileNotFoundError: File `nofile.py` not found."),
        ("%%writefile b.py\nprint(k + 1)\n1 / 0", "Writing b.py\n"),
        ("%run -i b.py", "9\nZeroDivisionError: division by zero"),
        ("%%capture c\nprint(1)\ndisplay(2)\n3", ""),
        ("c.stdout, [str(o) for o in c.outputs]", r"('1\n', ['2', '3'])"),
        ("%%capture --no-stdout\nprint(1)\ndisplay(2)", "1\n"),
        ("%%capture c\n1 / 0", "ZeroDivisionError: division by zero"),
        ("%env A=1", "env: A=1\n"),
        ("%env A", "'1'"),
        ("%env NOT_THERE", "UsageError: Environment does not have key: NOT_THERE"),
        ("%set_env B {k}", "env: B=8\n"),
        ("%xmode Plain", "Exception reporting mode: Plain\n"),
        (
            "%matplotlib inline\n%load_ext autoreload\n%autoreload 2\n%config InlineBackend.x = 1",
            "",
        ),
        ("%load_ext math", "The math module is not an IPython extension.\n"),
        ("%load_ext nothing", "ModuleNotFoundError: No module named 'nothing'"),
        ("%%html\n<b>", "[text/html] <b>\n\n"),
        ("%%markdown\n*a*\n", "[text/markdown] *a*\n\n"),
        ("%%javascript\n1", "[application/javascript] 1\n\n"),
        ("%reset -f", ""),
        ("%who", "Interactive namespace is empty.\n"),
        ("b, a, s, l = 1, 2, 'a\\nb', [1]\n%who", "a\t b\t l\t s\t \n"),
        ("%who_ls int", "['a', 'b']"),
        (
            "%whos",
            "Variable   Type    Data/Info\n----------------------------\na          int     2\n\
             b          int     1\nl          list    n=1\ns          str     a\\nb\n",
        ),
        ("%who dict", "No variables match your requested type.\n"),
        ("%xdel a\na", "NameError: name 'a' is not defined"),
        (
            "def f(a, b=1):\n    'does f'\nf?",
            "Signature: f(a, b=1)\nDocstring: does f\nFile:      <cell>\nType:      function\n",
        ),
        ("?nothing", "Object `nothing` not found.\n"),
        ("*rin*?", "print\n"),
        ("s = %prun -q -r 1\ntype(s).__name__", "'Stats'"),
        ("get_ipython().run_line_magic('pwd', '')", "'/home/user'"),
        ("get_ipython().run_cell('7 * 6').success", "[text/plain] 42\nTrue"),
    ];
    check(&mut session().await, &cells).await;
}

#[tokio::test]
async fn commands_that_cannot_be_carried_out_say_why_and_the_rest_of_the_cell_goes_on() {
    let pip = "y cannot be installed by code: the packages of a session are chosen where it is \
               started, by `--with NAME` or `packages`\n";
    let cells = [
        ("!nosuch\nprint('on')", "on\nstderr: bash: nosuch: command not found\n".to_owned()),
        ("!pip install y", format!("stderr: `!pip install y`: {pip}")),
        ("%pip install -q y", format!("stderr: `%pip install -q y`: {pip}")),
        (
            "import sys\n!{sys.executable} -m pip install y",
            format!("stderr: `!/usr/bin/python3 -m pip install y`: {pip}"),
        ),
        ("%pip install tzdata", "Requirement already satisfied: tzdata (VERSION)\n".to_owned()),
        (
            "%debug",
            "UsageError: `%debug` is not possible here: nobody answers the prompt of a debugger"
                .to_owned(),
        ),
        ("%foo x", "UsageError: Line magic function `%foo` not found.".to_owned()),
        ("%%foo\nx", "UsageError: Cell magic `%%foo` not found.".to_owned()),
        (
            "%writefile x",
            "UsageError: Line magic function `%writefile` not found (But cell magic \
             `%%writefile` exists, did you mean that instead?)."
                .to_owned(),
        ),
        (
            "%%pwd\nx",
            "UsageError: Cell magic `%%pwd` not found (But line magic `%pwd` exists, did you mean \
             that instead?)."
                .to_owned(),
        ),
        (
            "%%time",
            "UsageError: %%time is a cell magic, but the cell body is empty. Did you mean the \
             line magic %time (single %)?"
                .to_owned(),
        ),
        ("x = 1\n%%time", "UsageError: Line magic function `%%time` not found.".to_owned()),
    ];
    let mut session = session().await;
    for (code, expected) in cells {
        let execution = session.run(cell(code)).await.unwrap();
        let version = "import importlib.metadata\nimportlib.metadata.version('tzdata')";
        let version = exec(&mut session, version).await;
        let version = version.value().unwrap().as_str().unwrap().to_owned();
        assert_eq!(shown(&execution).replace(&version, "VERSION"), expected, "{code}");
    }
}

#[tokio::test]
async fn commands_of_a_shell_run_with_the_variables_of_the_cell() {
    let cells = [
        ("n = 3\n!seq $n | tac\nprint('on')", "3\n2\n1\non\n"),
        ("if True:\n    !exit 4\n_exit_code", "4"),
        ("found = !printf 'a b\\nc\\n'\nfound, found.s", "(['a b', 'c'], 'a b c')"),
        ("!!echo $((6 * 7))", "['42']"),
        ("%%bash\nfor x in 1 2; do\n  echo $x\ndone > out.txt\ncat out.txt", "1\n2\n"),
        ("%cat out.txt", "1\n2\n"),
        ("%%python\nimport sys\nprint(__name__, sys.argv)", "__main__ ['-']\n"),
        ("%%script sort -r\na\nb", "b\na\n"),
    ];
    check(&mut session().await, &cells).await;
}

#[tokio::test]
async fn only_where_a_statement_begins_is_a_line_a_command() {
    let cells = [
        ("x = 7", ""),
        ("(x\n% 4)", "3"),
        ("x = '''\n%pwd\n!ls\n'''\nx", r"'\n%pwd\n!ls\n'"),
        ("x = 7 \\\n% 4\nx", "3"),
        ("f'{x:{'>3'}}' + f'''{x\n}\n!ls'''", r"'  33\n!ls'"),
        ("# '''\n%pwd", "'/home/user'"),
        ("'%s' % x, x != 3, 'a?'", "('3', False, 'a?')"),
        (
            "def f():\n    '''\n    %no\n    '''\n    place = %pwd\n    return place\nf()",
            "'/home/user'",
        ),
        ("%env \\\n  A=2", "env: A=2\n"),
        ("x == %pwd", "SyntaxError: invalid syntax (<cell>, line 1)"),
        ("x = 1 +\n%pwd", "SyntaxError: invalid syntax (<cell>, line 1)"),
        ("%pwd\nx = (\n", "SyntaxError: '(' was never closed (<cell>, line 2)"),
    ];
    check(&mut session().await, &cells).await;
}

#[tokio::test]
async fn tracebacks_have_the_lines_as_they_were_written() {
    let mut session = session().await;
    for (code, expected) in [
        ("%pwd\n%env \\\n  A\n1 / 0", "line 4, in <module>\n    1 / 0\n    ~~^~~\n"),
        ("\n    x = 1\n    y = x / 0", "line 3, in <module>\n    y = x / 0\n        ~~^~~\n"),
        (
            "x = 0\nif True:\n    y = %time 1 / x",
            "line 3, in <module>\n    y = %time 1 / x\n  File \"<timed eval>\", line 1, in <module>\n    1 / x\n    ~~^~~\n",
        ),
        (
            "\n%%time\nx = 0\n\n1 / x",
            "line 2, in <module>\n    %%time\n  File \"<cell>\", line 5, in <module>\n    1 / x\n    ~~^~~\n",
        ),
        (
            "%%capture\n\n%foo",
            "line 1, in <module>\n    %%capture\n  File \"<cell>\", line 3, in <module>\n    %foo\nUsageError: Line",
        ),
        (
            "%time 1 +",
            "line 1, in <module>\n    %time 1 +\n  File \"<timed eval>\", line 1\n    1 +\n       ^\nSyntaxError",
        ),
        ("%%time\n\n1 +", "  File \"<cell>\", line 3\n    1 +\n       ^\nSyntaxError"),
        (
            "    %pwd\n    x = é +",
            "  File \"<cell>\", line 2\n    x = é +\n           ^\nSyntaxError",
        ),
    ] {
        session.run(cell("%env A=1")).await.unwrap();
        let execution = session.run(cell(code)).await.unwrap();
        let traceback = &execution.exception().unwrap().traceback;
        assert!(traceback.contains(expected), "{code}\n{traceback}");
        assert!(!traceback.contains("isolet"), "{traceback}");
    }
}

#[tokio::test]
async fn texts_and_values_of_cells_are_kept_and_are_not_among_the_variables() {
    let mut session = session().await;
    let cells = [
        ("40 + 2", "42"),
        ("_", "42"),
        ("'a'", "'a'"),
        ("_, __, ___", "('a', 42, 42)"),
        (
            "Out[1], _1, In[1], _i, _oh is Out, _ih is In",
            "(42, 42, '40 + 2', '_, __, ___', True, True)",
        ),
        ("1;", ""),
        ("None", ""),
        ("len(Out)", "5"),
        ("_ = 'own'", ""),
        ("6", "6"),
        ("_", "'own'"),
        ("del _", ""),
        ("[name for name in dir() if not name.startswith('_')]", "['In', 'Out']"),
        ("get_ipython().execution_count", "14"),
    ];
    check(&mut session, &cells).await;
    assert_eq!(session.variables().await.unwrap(), []);
    for _ in 0..40 {
        session.run(cell("7")).await.unwrap();
    }
    // Each run looks through the variables, so that there are only so many.
    let named = [("sum(name[1:].isdigit() for name in globals())", "32"), ("Out[1]", "42")];
    check(&mut session, &named).await;
    let execution = session.run(cell("x = 1\nx")).await.unwrap();
    let bound: Vec<_> = execution.locals().iter().map(|found| found.name.as_str()).collect();
    assert_eq!(bound, ["x"]);
}

#[tokio::test]
async fn values_that_are_kept_are_let_go_when_there_is_no_memory() {
    let limits = Limits::default().max_memory_bytes(256 << 20);
    let mut session = sandbox(limits).session().await.unwrap();
    let mut failed = 0;
    for _ in 0..6 {
        let execution = session.run(cell("bytearray(60 << 20)")).await.unwrap();
        if let Some(exception) = execution.exception() {
            assert_eq!(exception.type_name, "MemoryError");
            failed += 1;
        }
    }
    assert!(failed > 0, "nothing was kept");
    let execution = session.run(cell("len(bytearray(60 << 20))")).await.unwrap();
    assert_eq!(execution.repr(), Some("62914560"));
}

#[tokio::test]
async fn a_cell_whose_value_cannot_be_shown_fails() {
    let cells = [
        (
            "10 ** 5000",
            "ValueError: Exceeds the limit (4300 digits) for integer string conversion; use \
             sys.set_int_max_str_digits() to increase the limit",
        ),
        ("10 ** 5000;", ""),
        ("class B:\n    def __repr__(self): raise KeyError('b')\nb = B()\nb", "KeyError: 'b'"),
        ("[b]", "KeyError: 'b'"),
        ("1", "1"),
    ];
    check(&mut session().await, &cells).await;
}

#[tokio::test]
async fn every_expression_is_shown_if_the_program_asks_for_that() {
    let ask = "from IPython.core.interactiveshell import InteractiveShell\n\
               InteractiveShell.ast_node_interactivity = ";
    let cells = [
        (format!("{ask}'all'"), ""),
        ("1\n'a'\nNone\n2".to_owned(), "[text/plain] 1\n[text/plain] 'a'\n2"),
        (format!("{ask}'last_expr_or_assign'"), ""),
        ("x = 5".to_owned(), "5"),
        (format!("{ask}'none'"), ""),
        ("x".to_owned(), ""),
        ("%config InteractiveShell.ast_node_interactivity = 'last_expr'".to_owned(), ""),
        ("1\nx".to_owned(), "5"),
    ];
    let cells: Vec<_> = cells.iter().map(|(code, expected)| (code.as_str(), *expected)).collect();
    check(&mut session().await, &cells).await;
}

#[tokio::test]
async fn programs_find_the_modules_of_ipython_that_they_use() {
    let cells = [
        ("from IPython.core.display import HTML, display\nHTML('<b>')", "[text/html] <b>\n"),
        (
            "h = display(HTML('1'), display_id='a')\nh.update(HTML('2'))\nh.display_id",
            "[text/html] 1\n[text/html] 2\n'a'",
        ),
        (
            "from IPython.display import *\ndisplay_html('<i>', raw=True)\nclear_output(wait=True)",
            "[text/html] <i>\n",
        ),
        ("from IPython.display import set_matplotlib_formats\nset_matplotlib_formats('svg')", ""),
        ("GeoJSON({'type': 'Point'})", "[text/plain] <IPython.core.display.GeoJSON object>\n"),
        (
            "ProgressBar(4)",
            "[text/html] <progress style='width:60ex' max='4' value='0'></progress>\n",
        ),
        (
            "Audio([0, 1.0], rate=8000)._repr_mimebundle_()['text/html'][:70]",
            r#"'<audio controls="controls" ><source src="data:audio/wav;base64,UklGRig'"#,
        ),
        (
            "Video('http://a.b/c.mp4', width=5)",
            "[text/html] <video src=\"http://a.b/c.mp4\" controls width=\"5\"></video>\n",
        ),
        ("YouTubeVideo('abc').src", "'https://www.youtube.com/embed/abc'"),
        (
            "open('<a>.txt', 'w').close()\nFileLink('<a>.txt')",
            "[text/html] <a href='&lt;a&gt;.txt' target='_blank'>&lt;a&gt;.txt</a><br>\n",
        ),
        ("FileLinks('.').files()", "['./<a>.txt']"),
        ("Pretty('a')", "[text/plain] a\n"),
        (
            "from IPython.utils.capture import capture_output\nwith capture_output() as c:\n    print(1)\nc.stdout",
            r"'1\n'",
        ),
        (
            "import IPython\nIPython.get_ipython() is get_ipython(), type(get_ipython()).__name__",
            "(True, 'InteractiveShell')",
        ),
        (
            "from IPython.core.magic import Magics, line_magic, magics_class, register_cell_magic\n\
             @register_cell_magic\ndef up(line, cell): return line + cell.upper()\n\
             @magics_class\nclass M(Magics):\n    @line_magic\n    def low(self, line): return line.lower()\n\
             get_ipython().register_magics(M)\n%low ABC",
            "'abc'",
        ),
        ("%%up a\nb", r"'aB\n'"),
        (
            "from IPython.core.error import UsageError\ntry:\n    %nothing\nexcept UsageError as error:\n    print(error)",
            "Line magic function `%nothing` not found.\n",
        ),
    ];
    check(&mut session().await, &cells).await;
}

#[tokio::test]
async fn other_code_has_no_commands_and_no_shell() {
    let mut session = session().await;
    for code in ["%pwd", "!ls", "x = !ls", "print?"] {
        assert_eq!(raised(&mut session, code).await.type_name, "SyntaxError");
    }
    let code = "import IPython\nIPython.get_ipython() is None, 'get_ipython' in dir(__builtins__)";
    assert_eq!(exec(&mut session, code).await.repr(), Some("(True, False)"));
}
