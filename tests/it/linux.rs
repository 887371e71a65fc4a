//! Tests of small things that are as on Linux, where Pyodide has them otherwise.

use isolet::Value;

use crate::util::{eval, raised, session};

/// Evaluates an expression to text.
async fn text(code: &str) -> String {
    let value = eval(&mut session().await, code).await;
    value.as_str().unwrap_or_else(|| panic!("{value:?}")).to_owned()
}

const TELL: &str = "import os\ndef tell(call, *given):\n    try: return call(*given) and 'ok'\n\
    \x20   except OSError as error: return type(error).__name__ + str(error.errno)\n";

#[tokio::test]
async fn a_slash_after_a_file_is_refused() {
    let code = format!(
        "{TELL}open('a.txt', 'w').close(); os.mkdir('d')\n\
        ' '.join(tell(*given) for given in [(open, 'a.txt/'), (os.stat, 'a.txt/'),\n\
        \x20   (os.stat, 'a.txt/.'), (os.listdir, 'a.txt/'), (open, 'new/', 'w'), (os.stat, 'd/'),\n\
        \x20   (open, 'none/'), (os.stat, '/'), (open, 'd/../a.txt')])"
    );
    let not = "NotADirectoryError20";
    let rest = "IsADirectoryError21 ok FileNotFoundError2 ok ok";
    assert_eq!(text(&code).await, format!("{not} {not} {not} {not} {rest}"));
}

#[tokio::test]
async fn names_and_paths_have_a_longest() {
    let code = format!(
        "{TELL}long = '/tmp/' + 'd/' * 2045\n\
        ' '.join(tell(*given) for given in [(open, 'a' * 255, 'w'), (open, 'a' * 256, 'w'),\n\
        \x20   (open, '\\u00e9' * 128, 'w'), (os.mkdir, 'a' * 256), (os.stat, 'd/' + 'a' * 300),\n\
        \x20   (os.rename, 'a' * 255, 'b' * 256), (os.stat, long), (os.stat, long + 'd')])"
    );
    let too = "OSError36";
    let expected = format!("ok {too} {too} {too} {too} {too} FileNotFoundError2 {too}");
    assert_eq!(text(&code).await, expected);
}

#[tokio::test]
async fn devices_are_there() {
    let code = format!(
        "{TELL}def fill():\n    with open('/dev/full', 'w') as file: file.write('x')\n\
        def write(path):\n    with open(path, 'w') as file: return file.write('x')\n\
        zeros = open('/dev/zero', 'rb').read(3)\n\
        ' '.join([repr(zeros), tell(fill), tell(write, '/dev/fd/1'), tell(write, '/dev/stdout'),\n\
        \x20   tell(write, '/dev/zero'), tell(os.stat, '/dev/fd/0'), tell(os.stat, '/dev/stdin')])"
    );
    assert_eq!(text(&code).await, r"b'\x00\x00\x00' OSError28 ok ok ok ok ok");
}

#[tokio::test]
async fn browsers_are_none_and_missing_modules_say_why() {
    let mut session = session().await;
    let code = "import webbrowser, antigravity, importlib.util, sys\n\
        [webbrowser.open('http://localhost/'), webbrowser.open_new_tab('x'), sys.executable,\n\
        \x20   importlib.util.find_spec('tkinter')]";
    let expected = Value::from(vec![
        Value::from(false),
        Value::from(false),
        "/usr/bin/python3".into(),
        Value::None,
    ]);
    assert_eq!(eval(&mut session, code).await, expected);
    for (code, why) in [
        ("import turtle", "'turtle': a guest has no windows"),
        ("import tkinter.ttk", "'tkinter': a guest has no windows"),
        ("import curses", "'curses': a guest has no terminal"),
        ("import multiprocessing; multiprocessing.Pool(2)", "a guest has no processes"),
    ] {
        let exception = raised(&mut session, code).await;
        assert_eq!(exception.type_name, "ModuleNotFoundError", "{code}");
        assert!(exception.message.contains(why), "{exception:?}");
    }
}

#[tokio::test]
async fn times_of_the_first_year_and_of_no_summer_are_as_in_glibc() {
    let code = "import time\nf = (2024, 7, 1, 0, 0, 0, 0, 0)\n\
        repr([time.gmtime(-62135596800).tm_yday, time.gmtime(1e9)[:9],\n\
        \x20   [time.mktime((*f, summer)) for summer in (0, 1, -1)]])";
    let expected = "[1, (2001, 9, 9, 1, 46, 40, 6, 252, 0), \
        [1719792000.0, 1719788400.0, 1719792000.0]]";
    assert_eq!(text(code).await, expected);
}

#[tokio::test]
async fn a_loop_that_is_closed_runs_no_more_until_the_next_cell() {
    let mut session = session().await;
    let code = "import asyncio\nlog = []\nloop = asyncio.new_event_loop()\n\
        log.append(loop.run_until_complete(asyncio.sleep(0, 1))); loop.close()\n\
        rest = asyncio.sleep(0)\n\
        try: loop.run_until_complete(rest)\n\
        except RuntimeError as error: log += [loop.is_closed(), str(error)]\n\
        rest.close(); asyncio.get_event_loop().close(); log";
    let expected =
        Value::from(vec![Value::from(1), Value::from(true), Value::from("Event loop is closed")]);
    assert_eq!(eval(&mut session, code).await, expected);
    assert_eq!(eval(&mut session, "await asyncio.sleep(0, 2)").await, Value::from(2));
    let code = "asyncio.run(asyncio.sleep(0, 3)) + asyncio.get_event_loop().is_closed()";
    assert_eq!(eval(&mut session, code).await, Value::from(3));
}
