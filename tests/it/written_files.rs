//! Tests of the files that a run makes: in its result, and in a directory of the host.

use isolet::{Execution, Limits, Mount, Permissions, SessionState};

use crate::util::{Scratch, builder, exec, sandbox, session};

fn paths(execution: &Execution) -> Vec<(&str, u64)> {
    execution.files().iter().map(|file| (file.path.as_str(), file.size)).collect()
}

#[tokio::test]
async fn a_run_lists_the_files_that_it_has_made_or_changed_and_no_others() {
    let mut session = session().await;
    session.files().put("in.txt", "by the host").await.unwrap();
    let code = "
import os, pathlib, sqlite3, tempfile
open('in.txt').read()
pathlib.Path('out.txt').write_text('made')
os.makedirs('a/b'); open('a/b/c', 'wb').write(b'12'); os.rename('a', 'moved')
open('ab', 'w').close(); os.remove('/home/user/../user/ab')
open('new', 'w').close(); os.replace('new', 'final')
open('gone', 'w').close(); os.remove('gone')
os.symlink('/home/user/in.txt', 'link')
open('/dev/null', 'w').write('x')
os.makedirs('.cache'); open('.cache/x', 'w').close()
os.makedirs('__pycache__'); open('__pycache__/x.pyc', 'w').close()
with tempfile.TemporaryFile() as file: file.write(b'x')
open('/tmp/kept', 'w').write('x')
sqlite3.connect('data.db').execute('create table t(a)')";
    let execution = exec(&mut session, code).await;
    let expected = [
        ("/home/user/data.db", 8192),
        ("/home/user/final", 0),
        ("/home/user/moved/b/c", 2),
        ("/home/user/out.txt", 4),
        ("/tmp/kept", 1),
    ];
    assert_eq!(paths(&execution), expected);
    assert_eq!(session.files().get("/home/user/out.txt").await.unwrap().unwrap(), b"made");

    assert_eq!(paths(&exec(&mut session, "open('out.txt').read()").await), []);
    let execution = session.run("open('out.txt', 'a').write('!')\n1 / 0").await.unwrap();
    assert_eq!(paths(&execution), [("/home/user/out.txt", 5)]);
    let execution = session.run("open('last', 'w').close()\nos._exit(0)").await.unwrap();
    assert_eq!(paths(&execution), [("/home/user/last", 0)]);
    assert!(!execution.session_alive() && session.state() == SessionState::Exited);
}

#[tokio::test]
async fn files_beneath_mount_points_are_listed_too() {
    let scratch = Scratch::new("written-mounts");
    scratch.file("old", "old");
    let permissions = Permissions::none()
        .mount("/over", Mount::overlay(scratch.path()).unwrap())
        .unwrap()
        .mount("/read", Mount::read_only(scratch.path()).unwrap())
        .unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    let code = "
import os
try: open('/read/new', 'w')
except PermissionError: pass
open('/over/new', 'w').write('abc'); os.rename('/over/new', '/over/renamed')
open('/over/old', 'a').write('er')";
    let execution = exec(&mut session, code).await;
    assert_eq!(paths(&execution), [("/over/old", 5), ("/over/renamed", 3)]);
}

#[tokio::test]
async fn files_beyond_the_limit_are_counted() {
    let mut session = sandbox(Limits::default().max_files(3)).session().await.unwrap();
    let execution = exec(&mut session, "for n in range(10): open(f'{n}', 'w').close()").await;
    assert_eq!(paths(&execution), [("/home/user/0", 0), ("/home/user/1", 0), ("/home/user/2", 0)]);
    assert_eq!(execution.truncated().files, 7);
    assert!(execution.truncated().is_any());
    assert_eq!(exec(&mut session, "1").await.truncated().files, 0);
}

/// E26: the list is what the guest says, in the shape that the host wants.
#[tokio::test]
async fn a_guest_that_lies_about_its_files_names_none_that_leads_elsewhere() {
    let code = r#"
import pyodide_js
from pyodide.code import run_js
run_js('''(FS) => {
  const lies = ["/etc/../../x", "../../y", "/home/user/../../z", "relative", "/home//x", "/home/./x",
    "/home/user/a\\nb", "/home/user/" + "n".repeat(300), "/" + "n/".repeat(5000) + "n", "/lib/x", 7,
    "", "/", "/a\\0b", "/home/user/\\ud800"];
  const told = FS.trackingDelegate.onOpenFile;
  FS.trackingDelegate.onOpenFile = () => { for (const lie of lies) told(lie, 1); };
  FS.lstat = () => ({ mode: 0o100644, size: 2 ** 53 });
}''')(pyodide_js.FS)
open('/home/user/x', 'w').close()"#;
    let execution = exec(&mut session().await, code).await;
    let size = 1 << 53;
    assert_eq!(paths(&execution), [("/home/user/a\nb", size), ("/home/user/\u{fffd}", size)]);
}
