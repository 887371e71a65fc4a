//! Tests of the files that a run makes: in its result, and in a directory of the host.

use std::fs;
use std::os::unix::fs::symlink;

use isolet::{Execution, Limits, Mount, Permissions, SessionState};
use serde_json::{Value, json};

use crate::util::{Scratch, builder, exec, isolet, sandbox, session};

const CANARY: &str = "canary-5c1e7a";

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

#[test]
fn the_command_writes_the_files_of_a_run_to_a_directory() {
    let scratch = Scratch::new("files-dir");
    let directory = scratch.path().join("made");
    let shared = scratch.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let (made, mount) = (directory.to_str().unwrap(), format!("{}:/rw:rw", shared.display()));
    let code = "
import os
open('out.csv', 'wb').write(bytes(range(256)))
os.makedirs('deep/er'); open('deep/er/x', 'w').write('x')
open('/tmp/t', 'w').write('t')
open('/rw/there', 'w').write('there')";
    let ran = isolet(["run", "--files-dir", made, "--mount", &mount, "-c", code]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("", "", Some(0)));
    let read = |name: &str| fs::read(directory.join(name)).unwrap();
    assert_eq!(read("out.csv"), (0..=255).collect::<Vec<u8>>());
    assert_eq!((read("deep/er/x"), read("tmp/t")), (b"x".to_vec(), b"t".to_vec()));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 3, "`/rw/there` is on the host already");

    // Once more, over them, as a report.
    let code = "open('out.csv', 'w').write('new')";
    let ran = isolet(["run", "--json", "--files-dir", made, "-c", code]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["files"], json!([{ "path": "/home/user/out.csv", "size": 3 }]));
    assert_eq!((read("out.csv"), ran.code), (b"new".to_vec(), Some(0)));
    let ran = isolet(["run", "--files-dir", made, "-c", "print('no file')"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("no file\n", "", Some(0)));
}

#[test]
fn a_notebook_keeps_the_files_of_all_its_cells() {
    let scratch = Scratch::new("files-notebook");
    let code = |source: &str| json!({ "cell_type": "code", "source": source });
    let cells = [code("open('one', 'w').write('1')"), code("open('two', 'w').write('2')\n1 / 0")];
    let notebook = json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells });
    let notebook = scratch.file("n.ipynb", notebook.to_string());
    let made = scratch.path().join("made");
    let ran = isolet(["run", "--files-dir", made.to_str().unwrap(), &notebook]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(fs::read(made.join("one")).unwrap(), b"1");
    assert_eq!(fs::read(made.join("two")).unwrap(), b"2");
}

#[test]
fn a_file_that_cannot_be_written_is_told_of_and_the_others_are() {
    let scratch = Scratch::new("files-failed");
    let made = scratch.path().join("made");
    let made = made.to_str().unwrap();
    for (code, said) in [
        ("open('a\\nb', 'w').close(); open('ok', 'w').close()", "its name has control characters"),
        ("import os; open('lost', 'w').close(); os._exit(0)", "the session has ended"),
        (
            "import os; os.makedirs('tmp'); open('tmp/x', 'w').close(); open('/tmp/x', 'w').close()",
            "another file has the name `tmp/x`",
        ),
    ] {
        let ran = isolet(["run", "--files-dir", made, "-c", code]);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)), "{ran:?}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        let ran = isolet(["run", "--json", "--files-dir", made, "-c", code]);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&report["status"], ran.code), (&"failed".into(), Some(2)));
        assert_eq!(report["diagnostics"]["error_type"], "FILE");
    }
    assert_eq!(fs::read(scratch.path().join("made/ok")).unwrap(), b"");
    let missing = scratch.path().join("missing/made");
    let ran = isolet(["run", "--files-dir", missing.to_str().unwrap(), "-c", "print('ran')"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    assert!(ran.stderr.contains("of `--files-dir`: No such file"), "{}", ran.stderr);
}

/// I8: the guest chooses names in the directory, and nothing outside it.
#[test]
fn a_guest_cannot_lead_its_files_out_of_the_directory() {
    let scratch = Scratch::new("files-led");
    let canary = scratch.file("canary", CANARY);
    let outside = scratch.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), CANARY).unwrap();
    let directory = scratch.path().join("made");
    fs::create_dir(&directory).unwrap();
    symlink(&canary, directory.join("file")).unwrap();
    symlink(&outside, directory.join("folder")).unwrap();
    // The guest also has the directory itself, and makes links there while it runs.
    let mount = format!("{}:/rw:rw", directory.display());
    let code = format!(
        "
import os
for target, link in [('{canary}', 'later'), ('../outside', 'way'), ('../canary', 'near')]:
    try: os.symlink(target, '/rw/' + link)
    except OSError: pass
for folder in ('folder', 'way'):
    os.makedirs(folder); open(folder + '/x', 'w').write('evil')
for name in ('file', 'later', 'near'): open(name, 'w').write('good')
open('n' * 255, 'w').write('long')
os.symlink('/etc/passwd', 'passwd')"
    );
    let made = directory.to_str().unwrap();
    let ran = isolet(["run", "--mount", &mount, "--files-dir", made, "-c", &code]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`/home/user/folder/x` was not written"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&canary).unwrap(), CANARY);
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), CANARY);
    for name in ["file", "later", "near"] {
        assert_eq!(fs::read_to_string(directory.join(name)).unwrap(), "good");
        assert!(fs::symlink_metadata(directory.join(name)).unwrap().is_file());
    }
    assert_eq!(fs::read_to_string(directory.join("n".repeat(255))).unwrap(), "long");
    fs::symlink_metadata(directory.join("passwd")).unwrap_err();
}
