//! Tests of the files that a run makes: in its result, and in a directory of the host.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use isolet_test_support::{Scratch, isolet};

const CANARY: &str = "canary-5c1e7a";

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
