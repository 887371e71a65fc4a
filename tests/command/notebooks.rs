//! Tests of notebooks: run cell by cell, with commands of `IPython`, and written with
//! their outputs.

use std::fs;

use serde_json::{Value, json};

use isolet_test_support::{Scratch, isolet, isolet_fed};

/// Makes a notebook with these code cells, and a text cell before them.
fn notebook(scratch: &Scratch, name: &str, sources: &[&str]) -> String {
    let code = |source: &&str| {
        let lines: Vec<&str> = source.split_inclusive('\n').collect();
        json!({ "cell_type": "code", "source": lines, "outputs": [], "metadata": {} })
    };
    let text = json!({ "cell_type": "markdown", "source": "# Text", "metadata": {} });
    let cells: Vec<_> = [text].into_iter().chain(sources.iter().map(code)).collect();
    let metadata = json!({ "kernelspec": { "name": "python3", "language": "python" } });
    let file = json!({
        "nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells,
    });
    scratch.file(name, file.to_string())
}

#[test]
fn a_notebook_runs_cell_by_cell_in_one_session() {
    let scratch = Scratch::new("notebook");
    let path = notebook(
        &scratch,
        "good.ipynb",
        &[
            "import atexit, sys\natexit.register(print, 'bye')\nx = 20",
            "print('printed')\nx + 22",
            "x;",
            "None",
            "import asyncio\nawait asyncio.sleep(0)\nsys.argv[1:]",
        ],
    );
    let ran = isolet(["run", &path, "--json", "b"]);
    let told = "printed\n42\n['--json', 'b']\nbye\n";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), (told, "", Some(0)));

    let path = notebook(
        &scratch,
        "bad.ipynb",
        &[
            "print('one')",
            "def f():\n    return 1 / 0\n'two'",
            "print('three')\nf()",
            "print('four')",
        ],
    );
    let ran = isolet(["run", &path]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("one\n'two'\nthree\n", Some(1)));
    assert_eq!(
        ran.stderr,
        format!(
            "Traceback (most recent call last):\n  File \"{path}, cell 3\", line 2, in <module>\n    \
             f()\n    ~^^\n  File \"{path}, cell 2\", line 2, in f\n    return 1 / 0\n           \
             ~~^~~\nZeroDivisionError: division by zero\n"
        )
    );
    let ran = isolet(["run", "--json", &path]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["status"], &report["success"]), (&"raised".into(), &false.into()));
    let cells = report["cells"].as_array().unwrap();
    let outputs: Vec<_> = cells.iter().map(|cell| cell["stdout"].as_str().unwrap()).collect();
    assert_eq!(outputs, ["one\n", "", "three\n"]);
    assert_eq!((&cells[1]["repr"], ran.code), (&"'two'".into(), Some(1)));
}

#[test]
fn what_a_cell_sets_in_its_context_is_there_in_the_next_one_and_at_a_prompt() {
    let scratch = Scratch::new("notebook-context");
    let cells = [
        "import asyncio, contextvars, decimal; v = contextvars.ContextVar('v', default=0)",
        "await asyncio.sleep(0); v.set(5); decimal.getcontext().prec = 4; None",
        "async def late(): await asyncio.sleep(0.001); return (v.get(), str(decimal.Decimal(1) / 3))",
        "task = asyncio.create_task(late())",
        "v.set(6); None",
        "(await task, v.get(), str(decimal.Decimal(1) / 3))",
    ];
    let told = "((5, '0.3333'), 6, '0.3333')\n";
    let ran = isolet(["run", &notebook(&scratch, "context.ipynb", &cells)]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (told, ""));
    // At a prompt the block needs its empty line.
    let ran = isolet_fed(["repl"], cells.join("\n\n") + "\n");
    assert_eq!((ran.stdout.as_str(), ran.code), (told, Some(0)), "{}", ran.stderr);
}

#[test]
fn what_a_notebook_cannot_have_is_told_and_its_other_lines_run() {
    let scratch = Scratch::new("magic");
    for (source, printed, said, code) in [
        ("%pip install rich\n1", "1\n", "rich cannot be installed by code", 0),
        ("x = 1\n!nosuch\nx", "1\n", "bash: nosuch: command not found", 0),
        ("%%bash\necho $((6 * 7))\ngit status", "42\n", "bash: git: command not found", 0),
        ("%unknown", "", "UsageError: Line magic function `%unknown` not found.\n", 1),
    ] {
        let ran = isolet(["run", &notebook(&scratch, "magic.ipynb", &[source])]);
        assert_eq!((ran.stdout.as_str(), ran.code), (printed, Some(code)), "{source}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    // A line within an expression, and an unrelated error.
    let path = notebook(&scratch, "modulo.ipynb", &["x = (7\n% 4)\nx", "y = (7\n% 4)\ndef"]);
    let ran = isolet(["run", &path]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("3\n", Some(1)));
    assert!(ran.stderr.ends_with("SyntaxError: invalid syntax\n"), "{}", ran.stderr);
    let path = scratch.file("r.ipynb", r#"{"nbformat": 3, "worksheets": []}"#);
    let ran = isolet(["run", &path]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    assert!(
        ran.stderr.starts_with(&format!("error: cannot run `{path}`: its format is nbformat 3"))
    );
}

/// Makes a notebook of these cells.
fn notebook_of(scratch: &Scratch, name: &str, cells: &[Value]) -> String {
    let file = json!({
        "zeta": { "unknown": 1.5 },
        "cells": cells,
        "metadata": { "title": "é", "kernelspec": { "name": "python3", "language": "python" } },
        "nbformat": 4, "nbformat_minor": 5,
    });
    scratch.file(name, file.to_string())
}

fn code(source: &str) -> Value {
    json!({
        "cell_type": "code", "id": "a1", "metadata": {}, "execution_count": 9,
        "outputs": [{ "output_type": "stream", "name": "stdout", "text": "old" }],
        "source": source,
    })
}

fn tagged(source: &str, tag: &str) -> Value {
    let mut cell = code(source);
    cell["metadata"] = json!({ "tags": [tag], "collapsed": true });
    cell
}

fn read(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn stream(name: &str, text: &[&str]) -> Value {
    json!({ "name": name, "output_type": "stream", "text": text })
}

fn value(count: u64, repr: &str) -> Value {
    let data = json!({ "text/plain": [repr] });
    json!({
        "data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result",
    })
}

fn error(name: &str, message: &str, traceback: &[&str]) -> Value {
    json!({ "ename": name, "evalue": message, "output_type": "error", "traceback": traceback })
}

#[test]
fn a_notebook_is_written_with_its_outputs_in_order_and_otherwise_unchanged() {
    let scratch = Scratch::new("notebook-output");
    let picture = "display({'image/png': b'\\x89PNG', 'text/html': '<p>\\n<i>', 'image/svg+xml': \
                   '<svg/>', 'application/json': [1.1, None], 'text/plain': 'p'}, raw=True)";
    let rich = "class R:\n    def _repr_html_(self): return '<b>'\n    def __repr__(self): return \
                'R'\nR()";
    let text = json!({
        "cell_type": "markdown", "source": ["![a](attachment:a.png)"], "metadata": { "b": 1, "a": 2 },
        "attachments": { "a.png": { "image/png": "aGk=" } },
    });
    let first = format!(
        "import sys\nprint('one')\nprint('two')\nprint('err', file=sys.stderr)\nprint('three')\n\
         {picture}\nprint('four')\n40 + 2"
    );
    let sources = [
        &first,
        "%%capture\nx = 1\nx;",
        "   ",
        rich,
        "import atexit\natexit.register(print, 'bye')\nNone",
    ];
    let cells: Vec<Value> = [text].into_iter().chain(sources.map(code)).collect();
    let path = notebook_of(&scratch, "in.ipynb", &cells);
    let before = read(&path);
    let output = scratch.path().join("out.ipynb").display().to_string();
    let ran = isolet(["run", &path, "--output", &output]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("bye\n", "", Some(0)));

    let after = read(&output);
    let displayed = json!({
        "data": {
            "image/png": "iVBORw==", "text/html": ["<p>\n", "<i>"], "image/svg+xml": ["<svg/>"],
            "application/json": [1.1, null], "text/plain": ["p"],
        },
        "metadata": {}, "output_type": "display_data",
    });
    let mut rich = value(3, "R");
    rich["data"] = json!({ "text/html": ["<b>"], "text/plain": ["R"] });
    let outputs = [
        json!([
            stream("stdout", &["one\n", "two\n"]),
            stream("stderr", &["err\n"]),
            stream("stdout", &["three\n"]),
            displayed,
            stream("stdout", &["four\n"]),
            value(1, "42"),
        ]),
        json!([]),
        json!([]),
        json!([rich]),
        json!([]),
    ];
    let mut expected = before.clone();
    let counts = [json!(1), json!(2), Value::Null, json!(3), json!(4)];
    for (at, (outputs, count)) in outputs.into_iter().zip(counts).enumerate() {
        expected["cells"][at + 1]["outputs"] = outputs;
        expected["cells"][at + 1]["execution_count"] = count;
    }
    assert_eq!(after, expected);
    let written = fs::read_to_string(&output).unwrap();
    assert!(written.starts_with("{\n \"zeta\": {\n") && written.ends_with("}\n"), "{written}");
    assert_eq!(read(&path), before);
    let names = |directory| fs::read_dir(directory).unwrap().count();
    assert_eq!(names(scratch.path()), 2, "a temporary file is left");

    // In its own place, as a report, and with the file named before the notebook.
    let ran = isolet(["run", "--json", "--output", &path, &path]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["cells"][0]["stdout"], "one\ntwo\nthree\nfour\n");
    assert_eq!(read(&path), expected);
}

#[test]
fn a_notebook_whose_cell_fails_is_written_up_to_it() {
    let scratch = Scratch::new("notebook-failed");
    let cells = [
        tagged("print('fails')\n1 / 0", "raises-exception"),
        tagged("print('skipped')", "skip-execution"),
        code("print('here')\nraise ValueError('two\\nlines')"),
        code("print('never')"),
    ];
    let path = notebook_of(&scratch, "in.ipynb", &cells);
    let output = scratch.path().join("out.ipynb").display().to_string();
    let ran = isolet(["run", &path, "--output", &output]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(1)));
    assert!(ran.stderr.ends_with("ValueError: two\nlines\n"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("ZeroDivisionError"), "{}", ran.stderr);
    let mut expected = read(&path);
    let trace = "Traceback (most recent call last):";
    let at = |cell: u32| format!("  File \"{path}, cell {cell}\", line 2, in <module>");
    expected["cells"][0]["execution_count"] = 1.into();
    expected["cells"][0]["outputs"] = json!([
        stream("stdout", &["fails\n"]),
        error(
            "ZeroDivisionError",
            "division by zero",
            &[trace, &at(1), "    1 / 0", "    ~~^~~", "ZeroDivisionError: division by zero"],
        ),
    ]);
    expected["cells"][2]["execution_count"] = 2.into();
    expected["cells"][2]["outputs"] = json!([
        stream("stdout", &["here\n"]),
        error(
            "ValueError",
            "two\nlines",
            &[trace, &at(3), "    raise ValueError('two\\nlines')", "ValueError: two", "lines"],
        ),
    ]);
    assert_eq!(read(&output), expected);

    for (source, name, status) in [
        ("import sys\nsys.exit(5)", "SystemExit", 5),
        ("import sys\nsys.exit('why')", "SystemExit", 1),
        ("while True: pass", "TimeoutError", 3),
        ("import os\nos._exit(7)", "SystemExit", 7),
    ] {
        let path = notebook_of(&scratch, "end.ipynb", &[code(&format!("print('kept')\n{source}"))]);
        let ran = isolet(["run", "--timeout", "2s", &path, "--output", &output]);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(status)), "{source}");
        let outputs = read(&output)["cells"][0]["outputs"].clone();
        assert_eq!(outputs[0], stream("stdout", &["kept\n"]));
        assert_eq!(outputs[1]["ename"], name, "{outputs}");
        if source.ends_with("('why')") {
            assert_eq!(outputs[1]["evalue"], "why", "{outputs}");
            assert_eq!(ran.stderr, "SystemExit: why\n");
        }
    }
}

#[test]
fn an_exception_that_was_announced_is_no_failure() {
    let scratch = Scratch::new("notebook-raises");
    let cells = [code("print('one')"), tagged("1 / 0", "raises-exception")];
    let path = notebook_of(&scratch, "raises.ipynb", &cells);
    let ran = isolet(["run", &path]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("one\n", Some(0)));
    assert!(ran.stderr.ends_with("ZeroDivisionError: division by zero\n"), "{}", ran.stderr);
    let ran = isolet(["run", "--json", &path]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["success"], ran.code), (&true.into(), Some(0)));
    assert_eq!(report["cells"][1]["status"], "raised");
}

#[test]
fn what_a_written_notebook_leaves_out_it_says() {
    let scratch = Scratch::new("notebook-cut");
    let source = "import sys\nprint('é' * 50)\nprint('whole', file=sys.stderr)\nfor n in range(101): \
                  display(n)";
    let path = notebook_of(&scratch, "in.ipynb", &[code(source)]);
    let output = scratch.path().join("out.ipynb").display().to_string();
    let ran = isolet(["run", "--max-output", "10", &path, "--output", &output]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(3)), "{ran:?}");
    let outputs = read(&output)["cells"][0]["outputs"].clone();
    let outputs = outputs.as_array().unwrap();
    assert_eq!(outputs[0], stream("stdout", &["ééééé"]));
    assert_eq!(outputs.len(), 103);
    let told = outputs[102]["text"].as_array().unwrap();
    let told = |at: usize| told[at].as_str().unwrap();
    assert!(
        told(0).contains("of 101 bytes of standard output the first 10 are here"),
        "{}",
        told(0)
    );
    assert!(told(1).contains("displays left out: 1"), "{}", told(1));

    // A guest that changes from stream to stream with each byte fills no memory.
    let source =
        "import sys\nfor n in range(20_000): print(end='a'); print(end='b', file=sys.stderr)";
    let path = notebook_of(&scratch, "in.ipynb", &[code(source)]);
    let ran = isolet(["run", &path, "--output", &output]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let outputs = read(&output)["cells"][0]["outputs"].clone();
    assert_eq!(outputs.as_array().unwrap().len(), 10_000);
}

#[test]
fn an_output_that_is_no_notebooks_or_no_file_is_refused_before_anything_runs() {
    let scratch = Scratch::new("notebook-refused");
    let path = notebook_of(&scratch, "in.ipynb", &[code("print('ran')")]);
    let here = scratch.path().display().to_string();
    let missing = scratch.path().join("none/out.ipynb").display().to_string();
    for (words, said) in [
        (&["--output", "x.ipynb", "-c", "print('ran')"][..], "it cannot be used with `-c` or `-m`"),
        (&["--output", "x.ipynb", "x.py"], "`x.py` is none"),
        (&["--output", "x.ipynb"], "name one to run"),
        (&[&path, "--output", &here], "it is no regular file"),
        (&[&path, "--output", "/dev/null"], "it is no regular file"),
        (&[&path, "--output", &missing], "No such file"),
    ] {
        let ran = isolet([&["run"], words].concat());
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)), "{words:?}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(said), "{}", ran.stderr);
    }
}

/// I8: the guest chooses neither the file nor the directory.
#[cfg(unix)]
#[test]
fn a_guest_in_the_directory_cannot_lead_the_output_elsewhere() {
    let scratch = Scratch::new("notebook-led");
    let canary = scratch.file("canary", "canary");
    let shared = scratch.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let source = format!("import os\nos.symlink('{canary}', '/d/out.ipynb')");
    let cells = [
        tagged(&source, "raises-exception"),
        tagged("os.symlink('../canary', '/d/out.ipynb')", "raises-exception"),
    ];
    let path = notebook_of(&scratch, "in.ipynb", &cells);
    let output = shared.join("out.ipynb");
    let mount = format!("{}:/d:rw", shared.display());
    let ran = isolet(["run", "--mount", &mount, &path, "--output", output.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(&canary).unwrap(), "canary");
    assert!(fs::symlink_metadata(&output).unwrap().is_file());
}

#[test]
fn a_notebooks_cells_may_be_indented_and_have_commands_of_ipython() {
    let scratch = Scratch::new("notebook-magic");
    let path = notebook(
        &scratch,
        "magic.ipynb",
        &[
            "%matplotlib inline\n%load_ext autoreload\n%autoreload 2\n%config InlineBackend.x = 1",
            "text = '''\n%matplotlib inline\n'''\ntext",
            "    x = 1\n    x + 1",
            "%%capture kept\nprint('kept')",
            "_, Out[3], kept.stdout",
            "10 ** 5000",
            "x",
        ],
    );
    let ran = isolet(["run", &path]);
    let told = "'\\n%matplotlib inline\\n'\n2\n(2, 2, 'kept\\n')\n";
    assert_eq!((ran.stdout.as_str(), ran.code), (told, Some(1)));
    assert!(ran.stderr.starts_with("ValueError: Exceeds the limit (4300"), "{}", ran.stderr);
    let path = notebook(&scratch, "lines.ipynb", &["%matplotlib inline\n%env A=1\n1 / 0"]);
    let ran = isolet(["run", &path]);
    assert!(ran.stderr.contains("cell 1\", line 3, in <module>\n    1 / 0\n"), "{}", ran.stderr);
}
