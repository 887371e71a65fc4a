//! Tests of the shell: what programs start in the place of processes, and what holds inside of it.

use std::time::Duration;

use isolet::{Cell, Limits, Outcome, Param, Permissions, Sandbox, Stdin, Tool, ToolSpec, Value};
use isolet_test_support::server::{Response, Server};

use crate::util::{self, engine, eval, exec, root, sandbox};

/// Runs the recorded cases in the guest, by the program that has recorded them from bash. Those
/// that differ are known.
#[tokio::test]
async fn recorded_cases_are_as_with_bash_but_for_these() {
    const DIFFERENT: [&str; 3] = ["bzip2 and xz", "hard links", "bc"];
    let shell = root().join("tests/shell");
    let permissions =
        Permissions::none().mount("/shell", isolet::Mount::read_only(shell).unwrap()).unwrap();
    let limits = Limits::default().max_run_time(Duration::from_mins(2));
    let sandbox = Sandbox::builder(engine()).permissions(permissions).limits(limits);
    let mut session = sandbox.build().unwrap().session().await.unwrap();
    let code = "
import importlib.util, os
spec = importlib.util.spec_from_file_location('record', '/shell/record.py')
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)
os.umask(0o022)
different = []
for file in sorted(record.CASES.glob('*.txt')):
    for case in file.read_text().removeprefix('%% case ').split('\\n%% case '):
        if record.record(case).strip() != case.strip():
            different.append(case.split('\\n')[0])
different";
    let Value::List(found) = eval(&mut session, code).await else { panic!("no list of cases") };
    let found: Vec<_> = found.iter().filter_map(Value::as_str).collect();
    assert_eq!(found, DIFFERENT);
}

#[test]
fn the_page_of_cases_has_all_of_them() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let page = read("docs/concepts/shell-cases.md");
    let mut all = 0;
    for entry in std::fs::read_dir(root().join("tests/shell/cases")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = read(&format!("tests/shell/cases/{name}"));
        let count = text.lines().filter(|line| line.starts_with("%% case ")).count();
        let row = format!("| {} | {count} |", name.trim_end_matches(".txt").replace('_', " "));
        assert!(page.contains(&row), "the page lacks `{row}`");
        all += count;
    }
    assert!(page.contains(&format!("| all | {all} | {} |", all - 3)), "{all}");
}

#[tokio::test]
async fn subprocess_gives_output_status_and_errors_as_with_processes() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    let code = "
import os, shutil, subprocess
from subprocess import PIPE, STDOUT, run
found = [
    run(['echo', 'a b', '$HOME'], capture_output=True, text=True).stdout,
    run('echo out; echo err >&2; exit 3', shell=True, stdout=PIPE, stderr=STDOUT, text=True).stdout,
    run(['grep', '-c', 'x'], input='x\\ny\\nx\\n', text=True, capture_output=True).stdout,
    run(['env'], env={'A': '1'}, capture_output=True, text=True).stdout.split()[0],
    run(['pwd'], cwd='/tmp', capture_output=True, text=True).stdout,
    run(['false']).returncode, run('nosuch', shell=True, stderr=PIPE).returncode,
    os.system('exit 3'), os.popen('seq 3 | tac').read(), shutil.which('grep'), shutil.which('gcc'),
    run(['python3', '-c', 'import sys; print(sys.argv, sys.stdin.read()); sys.exit(4)', 'x'],
        input=b'in', capture_output=True).stdout.decode(),
]
try:
    run(['nosuch'])
except FileNotFoundError as error:
    found.append(str(error))
try:
    run('exit 5', shell=True, check=True)
except subprocess.CalledProcessError as error:
    found.append(error.returncode)
with subprocess.Popen('sort', stdin=PIPE, stdout=PIPE, text=True) as started:
    started.stdin.write('b\\na\\n')
    started.stdin.close()
    found.append([started.stdout.readlines(), started.wait()])
found";
    let expected = Value::List(vec![
        "a b $HOME\n".into(),
        "out\nerr\n".into(),
        "2\n".into(),
        "A=1".into(),
        "/tmp\n".into(),
        1.into(),
        127.into(),
        768.into(),
        "3\n2\n1\n".into(),
        "/usr/bin/grep".into(),
        Value::None,
        "['-c', 'x'] in\n".into(),
        "[Errno 2] No such file or directory: 'nosuch'".into(),
        5.into(),
        Value::List(vec![Value::List(vec!["a\n".into(), "b\n".into()]), 0.into()]),
    ]);
    assert_eq!(eval(&mut session, code).await, expected);
}

#[tokio::test]
async fn a_command_that_does_not_end_ends_at_the_deadline() {
    for command in [
        "while :; do :; done",
        "sleep 1000",
        "while :; do echo y; done | sort",
        "f() { sleep 0.01; f; }; f",
    ] {
        let limits = Limits::default().max_run_time(Duration::from_secs(1));
        let mut session = sandbox(limits).session().await.unwrap();
        let code = format!("import os; os.system({command:?})");
        let ran = session.run(code.as_str()).await.unwrap();
        assert!(
            matches!(ran.outcome(), Outcome::Terminated(_) | Outcome::Raised(_)),
            "{command}: {ran:?}"
        );
        assert!(ran.usage().wall_time < Duration::from_secs(4), "{command}: {ran:?}");
    }
}

#[tokio::test]
async fn what_a_command_keeps_counts_as_the_guest_s_memory() {
    let limits = Limits::default().max_memory_bytes(256 << 20);
    let mut session = sandbox(limits).session().await.unwrap();
    let code = "import os\ntry:\n    os.system('x=$(seq 100000000)')\nexcept MemoryError as error:\n    \
                print(error)\nos.system('echo on')";
    let ran = exec(&mut session, code).await;
    assert_eq!(ran.stdout(), "the shell has no memory left\non\n");
    assert!(ran.usage().peak_memory_bytes <= 256 << 20);
}

#[tokio::test]
async fn cells_of_the_shell_share_state_and_python_s_directory_and_environment() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    let first = session.shell("x=7; f() { echo f$x; }; cd /tmp; export A=1; exit 3").await.unwrap();
    assert_eq!(first.outcome(), &Outcome::Exited(3));
    let code = "import os; [os.getcwd(), os.environ['A']]";
    let expected = Value::List(vec!["/tmp".into(), "1".into()]);
    assert_eq!(eval(&mut session, code).await, expected);
    exec(&mut session, "os.chdir('/home/user'); os.environ['B'] = '2'; del os.environ['A']").await;
    let second = session.shell("pwd; echo $A$B; f").await.unwrap();
    assert_eq!((second.stdout(), second.outcome()), ("/home/user\n2\nf7\n", &Outcome::Exited(0)));
    // A program has a shell of its own.
    let own = Cell::shell("echo \"$x$C$1\"; cd /; D=1; read line; echo $line").program();
    let own = own.argv(["sh", "arg"]).inputs([("C", "c")]).working_directory("/tmp");
    let own = session.run(own.stdin(Stdin::from_bytes("in\n"))).await.unwrap();
    assert_eq!(own.stdout(), "carg\nin\n");
    let last = session.shell("pwd; echo $C$D").await.unwrap();
    assert_eq!(last.stdout(), "/home/user\n\n");
}

#[tokio::test]
async fn a_session_that_was_saved_has_its_shell_s_directory_and_environment() {
    let sandbox = sandbox(Limits::default());
    let mut session = sandbox.session().await.unwrap();
    session.shell("mkdir -p /tmp/a; cd /tmp/a; export A=1").await.unwrap();
    let file = std::env::temp_dir().join(format!("isolet-shell-saved-{}", std::process::id()));
    session.save(&file).await.unwrap();
    let mut restored = sandbox.restore(&file).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    for session in [&mut restored, &mut session] {
        assert_eq!(session.shell("pwd; echo $A").await.unwrap().stdout(), "/tmp/a\n1\n");
    }
}

#[tokio::test]
async fn output_of_a_cell_of_the_shell_is_streamed() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    let mut run = session.shell_stream("echo a; echo b >&2; echo c");
    let mut output = run.take_output().unwrap();
    let read = async {
        let mut text = String::new();
        while let Some(chunk) = output.next().await.map(util::output) {
            text += &String::from_utf8_lossy(&chunk.bytes);
        }
        text
    };
    let (text, execution) = tokio::join!(read, run.finish());
    assert_eq!(text, "a\nb\nc\n");
    assert_eq!(execution.unwrap().outcome(), &Outcome::Exited(0));
}

/// The tool answers when the host has read what the program has printed before it.
#[tokio::test]
async fn what_a_command_in_a_script_prints_is_there_while_it_runs() {
    let (seen, wait) = tokio::sync::watch::channel(0);
    let spec = ToolSpec::new("seen").param(Param::new("lines"));
    let tool = Tool::from_handler(spec, move |args, _| {
        let (lines, mut wait) = (args.get("lines").and_then(Value::as_i64), wait.clone());
        async move {
            let read = wait.wait_for(|seen| Some(*seen) >= lines);
            let in_time = tokio::time::timeout(Duration::from_secs(20), read).await.is_ok();
            Ok(Value::from(in_time))
        }
    });
    let program = "import os, sys\nfor n in (1, 3):\n  print(n)\n  print(n + 1, file=sys.stderr)\n  \
                   assert os.popen(f'seen {n + 1}').read() == 'true\\n'";
    let sandbox = Sandbox::builder(engine()).tool(tool).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, format!("open('p.py', 'w').write({program:?})")).await;
    for (script, lines) in [
        ("python p.py; echo 5", 5),
        ("{ true && python3 -u p.py 2>&1; } | while read x; do echo $x; done; echo 5", 5),
        ("f() { echo x | python p.py 3>&1 1>&2 2>&3; }; if f; then echo 5; fi", 5),
        ("python -c 'import os; os.system(\"python p.py\")'; echo 5", 5),
        ("echo 1; echo 2; seen --lines 2", 3),
    ] {
        seen.send_replace(0);
        let mut run = session.shell_stream(script);
        let mut output = run.take_output().unwrap();
        let read = async {
            let mut text = String::new();
            while let Some(chunk) = output.next().await.map(util::output) {
                text += &String::from_utf8_lossy(&chunk.bytes);
                seen.send_replace(i64::try_from(text.lines().count()).unwrap());
            }
            text
        };
        let (text, execution) = tokio::join!(read, run.finish());
        assert_eq!(execution.unwrap().outcome(), &Outcome::Exited(0), "{script}: {text}");
        assert_eq!(text.lines().count(), lines, "{script}: {text}");
    }
}

#[tokio::test]
async fn commands_of_a_pipeline_read_what_comes_and_end_with_their_readers() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    let script = "yes | python -c 'print(input(), input())'
python -c 'while True: print(1)' 2> errors | head -2; echo ${PIPESTATUS[0]}; tail -1 errors
for x in 1 2; do echo $x; done | python -c 'import sys; print([*sys.stdin])'
python -c 'print(3)' | python -c 'print(int(input()) + 1)' | python -c 'print(int(input()) + 1)'
python -c 'import sys; print(1); print(2, file=sys.stderr); print(3)' 2>&1 > file | tr 2 e
cat file; python -c 'import sys; sys.stdout.buffer.write(bytes([255]))' | od -An -tx1";
    let ran = session.shell(script).await.unwrap();
    let expected = "y y\n1\n1\n1\nBrokenPipeError: [Errno 32] Broken pipe\n['1\\n', '2\\n']\n5\n\
                    e\n1\n3\n ff\n";
    assert_eq!(ran.stdout(), expected, "{}", ran.stderr());
}

#[tokio::test]
async fn a_time_limit_in_a_script_ends_a_program_that_computes_or_waits() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    for program in ["while True: pass", "import time; time.sleep(1000)", "while True: print()"] {
        let script = format!(
            "A=1; timeout 0.2 python3 -c '{program}' > /dev/null; echo $? $A; \
             timeout 9 python3 -c 'import os, sys; print(os.environ[\"PWD\"], sys.argv)'"
        );
        let ran = session.shell(script).await.unwrap();
        assert_eq!(ran.stdout(), "124 1\n/home/user ['-c']\n", "{program}: {}", ran.stderr());
        let code = format!(
            "import subprocess, sys
try:
    subprocess.run([sys.executable, '-c', {program:?}], timeout=0.2, stdout=subprocess.DEVNULL)
except subprocess.TimeoutExpired as error:
    found = error.timeout
found"
        );
        assert_eq!(eval(&mut session, code).await, 0.2.into(), "{program}");
    }
    // A program's own alarm goes on beside that of its command, and the shell's jobs beside both.
    let script = "(sleep 0.1; echo > ticked) & timeout 60 python3 -c '
import os, signal
rings = []
signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.1)
while len(rings) < 3 or not os.path.exists(\"ticked\"): pass
print(len(rings) >= 3)'";
    let ran = session.shell(script).await.unwrap();
    assert_eq!(ran.stdout(), "True\n", "{}", ran.stderr());
    // An alarm ends no command of the shell.
    let code = "
import os, signal
rings = []
signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05)
[os.system('sleep 0.1; for x in $(seq 20000); do :; done; exit 3') >> 8, len(rings)]";
    assert_eq!(eval(&mut session, code).await, Value::List(vec![3.into(), 1.into()]));
}

#[tokio::test]
async fn programs_do_not_see_each_other_s_modules_or_variables() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    let script = "mkdir a b; echo 'x=\"a\"' > a/common.py; echo 'x=\"b\"' > b/common.py
for d in a b; do echo 'import common, sys; print(common.x, len(sys.argv))' > $d/main.py; done
python3 a/main.py; python3 b/main.py 1; cd a; python3 -m main
echo 'print(\"y\" in globals())' | python3; python3 -c 'import sys; sys.exit(5)'; echo $?";
    exec(&mut session, "y = 1").await;
    let ran = session.shell(script).await.unwrap();
    assert_eq!(ran.stdout(), "a 1\nb 2\na 1\nFalse\n5\n", "{}", ran.stderr());
    assert_eq!(eval(&mut session, "import common; common.x").await, "a".into());
}

#[tokio::test]
async fn a_program_in_a_script_reads_the_script_s_input_where_that_is_not_read_yet() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    let script = "read first; echo $first; python3 -c 'import os, sys; print(sys.stdin.read())'";
    for cell in [Cell::shell(script), Cell::shell(script).program()] {
        let ran = session.run(cell.stdin(Stdin::from_bytes("a\nb\nc"))).await.unwrap();
        assert_eq!(ran.stdout(), "a\nb\nc\n", "{}", ran.stderr());
    }
    let nested = "import os, subprocess
os.system('read x; echo got $x')
print(subprocess.run('cat', stdout=subprocess.PIPE).stdout)";
    let ran = session.run(Cell::new(nested).stdin(Stdin::from_bytes("a\nb\n"))).await.unwrap();
    assert_eq!(ran.stdout(), "got a\nb''\n", "what a command has taken is read: {}", ran.stderr());
}

#[tokio::test]
async fn a_directory_that_only_the_shell_has_is_the_shell_s_and_python_stays() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    let ran = session.shell("cd /usr/bin; pwd").await.unwrap();
    assert_eq!((ran.stdout(), ran.outcome()), ("/usr/bin\n", &Outcome::Exited(0)));
    assert_eq!(session.shell("pwd").await.unwrap().stdout(), "/usr/bin\n");
    assert_eq!(eval(&mut session, "import os; os.getcwd()").await, "/home/user".into());
    exec(&mut session, "os.chdir('/tmp')").await;
    assert_eq!(session.shell("pwd").await.unwrap().stdout(), "/tmp\n");
    let own = session.run(Cell::shell("nosuch").program()).await.unwrap();
    assert_eq!(own.stderr(), "bash: nosuch: command not found\n");
}

#[tokio::test]
async fn the_end_of_a_program_in_a_script_ends_neither_the_script_nor_the_session() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    session.shell("x=1").await.unwrap();
    let script = "python3 -c 'import os; os._exit(3)'; echo $?; python3 -c 'exit(4)'; echo $?";
    assert_eq!(session.shell(script).await.unwrap().stdout(), "3\n4\n");
    // A deadline ends the script, and leaves the shell as it was.
    let endless = Cell::shell("y=2; python3 -c 'while True: pass'; echo on");
    let ran = session.run(endless.timeout(Duration::from_millis(500))).await.unwrap();
    assert!(matches!(ran.outcome(), Outcome::Terminated(_)), "{ran:?}");
    let after = session.shell("echo $x$y").await.unwrap();
    assert_eq!((ran.stdout(), after.stdout()), ("", "12\n"));
}

#[tokio::test]
async fn a_time_limit_of_subprocess_ends_a_command_and_the_run_goes_on() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    for command in ["while :; do :; done", "echo a; sleep 1000"] {
        let code = format!(
            "import subprocess\ntry:\n    subprocess.run({command:?}, shell=True, timeout=0.2, \
             stdout=subprocess.PIPE)\nexcept subprocess.TimeoutExpired as error:\n    \
             found = [error.timeout, error.output]\nfound"
        );
        let output = if command.contains("echo") { &b"a\n"[..] } else { b"" };
        let expected = Value::List(vec![0.2.into(), Value::Bytes(output.to_vec())]);
        assert_eq!(eval(&mut session, code).await, expected);
    }
}

#[tokio::test]
async fn asyncio_runs_commands_beside_other_tasks() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    let code = "
import asyncio
from asyncio.subprocess import PIPE
first = await asyncio.create_subprocess_shell('read x; echo got $x; exit 3', stdin=PIPE, stdout=PIPE)
second = await asyncio.create_subprocess_exec('sort', '-r', stdin=PIPE, stdout=PIPE)
outputs = await asyncio.gather(first.communicate(b'a\\n'), second.communicate(b'1\\n2\\n'))
found = [out.decode() for out, _ in outputs] + [first.returncode, second.returncode]
endless = await asyncio.create_subprocess_shell('echo begun; sleep 1000', stdout=PIPE)
found.append((await endless.stdout.readline()).decode())
try:
    await asyncio.wait_for(endless.wait(), 0.1)
except TimeoutError:
    endless.kill()
found + [await endless.wait()]";
    let expected = Value::List(vec![
        "got a\n".into(),
        "2\n1\n".into(),
        3.into(),
        0.into(),
        "begun\n".into(),
        (-9).into(),
    ]);
    assert_eq!(eval(&mut session, code).await, expected);
}

#[tokio::test]
async fn a_prompt_is_told_whether_a_script_goes_on() {
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    for (script, goes_on) in [
        ("ls", false),
        ("if true; then", true),
        ("if true; then\necho; fi", false),
        ("echo 'a", true),
        ("echo $(ls", true),
        ("cat <<E\nx", true),
        ("cat <<E\nx\nE", false),
        ("echo a \\", true),
        ("echo a |", true),
        ("true &&", true),
        ("x=(1 2", true),
        ("if true; fi", false),
    ] {
        assert_eq!(session.is_incomplete(Cell::shell(script)).await.unwrap(), goes_on, "{script}");
    }
}

#[tokio::test]
async fn tools_of_the_host_are_commands() {
    let spec = ToolSpec::new("add").param(Param::new("x")).param(Param::new("y").optional());
    let add = Tool::from_handler(spec, |args, _| async move {
        let number = |name| args.get(name).and_then(Value::as_i64).unwrap_or_default();
        Ok(Value::from(number("x") + number("y")))
    });
    let sandbox = Sandbox::builder(engine()).tool(add).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let ran = session.shell("add 1 2; add --y 4 --x=3 | tr 7 s; add; echo $?").await.unwrap();
    assert_eq!(ran.stdout(), "3\ns\n2\n", "{}", ran.stderr());
    assert!(ran.stderr().starts_with("add: "), "{}", ran.stderr());
    let code = "import subprocess; subprocess.run(['add', '5'], capture_output=True).stdout";
    assert_eq!(eval(&mut session, code).await, Value::Bytes(b"5\n".to_vec()));
}

#[tokio::test]
async fn curl_and_wget_reach_what_the_policy_allows_and_nothing_else() {
    let server = Server::start(|request| match request.path.as_str() {
        "/moved" => Response::redirect(302, "/file.txt"),
        "/missing" => Response(404, Vec::new(), b"none".to_vec()),
        _ => Response::text(&format!(
            "{} {} {}",
            request.method,
            request.header("x-test").unwrap_or("-"),
            String::from_utf8_lossy(&request.body)
        )),
    });
    let denied = Server::with_text("canary");
    let permissions = Permissions::none().allow_net(&server.rule()).unwrap();
    let sandbox = Sandbox::builder(engine()).permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let script = format!(
        "curl -s -H 'X-Test: 1' -d a=b {url}; echo
curl -sL {moved} -o got; cat got; echo
curl -s -o /dev/null -w '%{{http_code}}\\n' {missing}; curl -sf {missing}; echo $?
wget -q {url}; cat file.txt; echo
curl -s {denied}; echo $?; wget -q -O - {denied}; echo $?",
        url = server.url("/file.txt"),
        moved = server.url("/moved"),
        missing = server.url("/missing"),
        denied = denied.url("/"),
    );
    let ran = session.shell(script).await.unwrap();
    let expected = "POST 1 a=b\nGET - \n404\n22\nGET - \n7\n4\n";
    assert_eq!(ran.stdout(), expected, "{}", ran.stderr());
    assert_eq!(denied.connections(), 0);
}
