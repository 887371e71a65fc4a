//! Tests of scripts with neighbouring files, modules, and directories and zip files with a
//! `__main__.py`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use isolet_test_support::{Ran, Scratch, command, isolet, isolet_fed, wheel};

const TELL: &str = "import os, sys, helper\n\
    print(helper.WORD, sys.argv, __name__, __file__, sys.path[0], os.getcwd())\n";

/// Makes a directory with a script `main.py`, a module `helper`, a package `pkg` with a
/// `__main__.py`, and a separate `__main__.py`.
fn project(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    scratch.file("main.py", TELL);
    scratch.file("__main__.py", TELL);
    scratch.file("helper.py", "WORD = 'found'\n");
    fs::create_dir(scratch.path().join("pkg")).unwrap();
    scratch.file("pkg/__init__.py", "");
    let tell = "import sys\nfrom . import sub\nprint(sub.WORD, sys.argv, __name__, __package__)\n";
    scratch.file("pkg/__main__.py", tell);
    scratch.file("pkg/sub.py", "WORD = 'sub'\n");
    scratch
}

/// Runs the command in this directory.
fn isolet_in(directory: &Path, args: &[&str]) -> Ran {
    command(args).current_dir(directory).output().unwrap().into()
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_script_that_lacks_its_neighbour_is_told_of_the_option() {
    let project = project("unseen");
    let directory = project.path().display().to_string();
    let script = format!("{directory}/main.py");
    let ran = isolet(["run", &script]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(1)));
    let last =
        format!("hint: `helper.py` is in `{directory}`, which `--here` shows to the guest\n");
    assert!(ran.stderr.ends_with(&last), "{}", ran.stderr);
    let ran = isolet_in(project.path(), &["run", "-m", "pkg"]);
    let said = format!(
        "isolet: No module named pkg\nhint: `pkg/` is in `{directory}`, which `--here` shows to \
         the guest\n"
    );
    assert_eq!((ran.stderr, ran.code), (said, Some(1)));
}

#[test]
fn a_program_that_lacks_a_package_is_told_of_the_option() {
    let ran = isolet(["run", "-c", "import numpy.linalg"]);
    let last = "ModuleNotFoundError: No module named 'numpy'\n\
                hint: `--with numpy` loads it, if its package has that name\n";
    assert!(ran.stderr.ends_with(last), "{}", ran.stderr);
    // No package brings a module that its own one lacks, or a name that cannot be one.
    for (module, says) in [
        ("PIL.Image", "`--with pillow` loads it: that is the package of `PIL`"),
        ("torch", "`torch` has no wheel for WebAssembly, so that it cannot be loaded"),
        ("pip", "`pip` does not work in a sandbox: `--with NAME` loads a package"),
    ] {
        let ran = isolet(["run", "-c", &format!("import {module}")]);
        assert!(ran.stderr.contains(&format!("\nhint: {says}")), "{}", ran.stderr);
    }
    for code in ["import json.nosuch", "raise ModuleNotFoundError(\"No module named 'a b'\")"] {
        let ran = isolet(["run", "-c", code]);
        assert!(!ran.stderr.contains("hint"), "{}", ran.stderr);
    }
}

#[test]
fn here_shows_the_directory_of_the_script_and_keeps_it_as_it_is() {
    let project = project("here");
    let parent = project.path().parent().unwrap();
    let script = format!("{}/main.py", project.path().file_name().unwrap().to_str().unwrap());
    let ran = isolet_in(parent, &["run", "--here", &script, "a", "--json"]);
    let told = "found ['/here/main.py', 'a', '--json'] __main__ /here/main.py /here /here\n";
    assert_eq!((ran.stdout.as_str(), ran.code), (told, Some(0)), "{}", ran.stderr);
    let before = names_in(project.path());
    let code = "import helper; print(helper.WORD, open('helper.py').read()); open('new', 'w').write('x'); \
                import os; os.remove('main.py'); print(sorted(os.listdir())[-1])";
    let ran = isolet_in(project.path(), &["run", "--here", "-c", code]);
    assert_eq!(ran.stdout, "found WORD = 'found'\n\npkg\n", "{}", ran.stderr);
    assert_eq!(names_in(project.path()), before);
}

#[test]
fn here_at_a_prompt_is_the_current_directory() {
    let project = project("here-prompt");
    let mut repl = command(["repl", "--here"])
        .current_dir(project.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = "import helper, os\nprint(helper.WORD, os.getcwd())\n";
    repl.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ran = Ran::from(repl.wait_with_output().unwrap());
    assert!(ran.stdout.contains("found /here\n"), "{ran:?}");
}

#[test]
fn a_script_in_a_mounted_directory_imports_its_neighbours() {
    let project = project("mounted");
    let directory = project.path().to_str().unwrap();
    let parent = project.path().parent().unwrap().to_str().unwrap();
    let name = project.path().file_name().unwrap().to_str().unwrap();
    let script = format!("{directory}/main.py");
    for (mount, beneath) in [
        (format!("{directory}:/data"), "/data".to_owned()),
        (format!("{parent}:/top"), format!("/top/{name}")),
    ] {
        let ran = isolet(["run", "--mount", &mount, &script]);
        let told = format!(
            "found ['{beneath}/main.py'] __main__ {beneath}/main.py {beneath} /home/user\n"
        );
        assert_eq!((ran.stdout, ran.code), (told, Some(0)), "{}", ran.stderr);
    }
    let ran = isolet(["run", "--allow-read", directory, &script]);
    assert!(ran.stdout.starts_with(&format!("found ['/sandbox/{name}/main.py']")), "{ran:?}");
    let ran = isolet([
        "run",
        "--mount",
        &format!("{directory}:/data"),
        "--env",
        "PYTHONPATH=/nosuch:/data",
        "-c",
        "import helper; print(helper.WORD)",
    ]);
    assert_eq!(ran.stdout, "found\n", "{}", ran.stderr);
}

#[test]
fn a_module_is_run_as_python_runs_it() {
    let project = project("module");
    let ran = isolet_fed(["run", "-m", "json.tool", "--indent", "1"], "[1]");
    assert_eq!((ran.stdout.as_str(), ran.code), ("[\n 1\n]\n", Some(0)), "{}", ran.stderr);
    let told = "sub ['/here/pkg/__main__.py', '-m', '--timeout', '0'] __main__ pkg\n";
    let args = ["run", "--here", "-m", "pkg", "-m", "--timeout", "0"];
    let ran = isolet_in(project.path(), &args);
    assert_eq!((ran.stdout.as_str(), ran.code), (told, Some(0)), "{}", ran.stderr);
    let mount = format!("{}:/data", project.path().display());
    let ran = isolet_in(project.path(), &["run", "--mount", &mount, "-mpkg"]);
    assert_eq!(ran.stdout, "sub ['/data/pkg/__main__.py'] __main__ pkg\n", "{}", ran.stderr);

    wheel(
        project.path(),
        "greeting",
        "1.0",
        "import sys\nprint('hello', __name__, sys.argv[1:])\n",
    );
    let wheels = project.path().to_str().unwrap();
    let with =
        ["run", "--offline", "--wheels", wheels, "--with", "greeting", "-m", "greeting", "x"];
    let ran = isolet(with);
    assert_eq!((ran.stdout.as_str(), ran.code), ("hello __main__ ['x']\n", Some(0)), "{ran:?}");

    project.file("fails.py", "def f():\n    1 / 0\nf()\n");
    let ran = isolet_in(project.path(), &["run", "--here", "-m", "fails"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        ran.stderr,
        "Traceback (most recent call last):\n  File \"/here/fails.py\", line 3, in <module>\n    \
         f()\n    ~^^\n  File \"/here/fails.py\", line 2, in f\n    1 / 0\n    ~~^~~\n\
         ZeroDivisionError: division by zero\n"
    );
}

#[test]
fn a_directory_and_a_zip_file_run_their_main() {
    let project = project("application");
    let directory = project.path().to_str().unwrap();
    let ran = isolet(["run", directory, "--raw"]);
    let told = "found ['/here', '--raw'] __main__ /here/__main__.py /here /here\n";
    assert_eq!((ran.stdout.as_str(), ran.code), (told, Some(0)), "{}", ran.stderr);

    let archive = project.path().join("app.pyz");
    let script = "import sys, zipfile\n\
        with open(sys.argv[1], 'wb') as f: f.write(b'#!/usr/bin/env python3\\n')\n\
        with zipfile.ZipFile(sys.argv[1], 'a') as z:\n\
        \x20   for name in ('__main__.py', 'helper.py'): z.write(f'{sys.argv[2]}/{name}', name)\n";
    let made = Command::new("python3").args(["-c", script]).arg(&archive).arg(directory).status();
    assert!(made.unwrap().success());
    let archive = archive.to_str().unwrap();
    let ran = isolet(["run", archive, "-c"]);
    let guest = "/home/user/app.pyz";
    let told = format!("found ['{guest}', '-c'] __main__ {guest}/__main__.py {guest} /home/user\n");
    assert_eq!((ran.stdout, ran.code), (told, Some(0)), "{}", ran.stderr);
    let ran = isolet(["run", "--here", archive]);
    assert!(ran.stdout.starts_with("found ['/here/app.pyz'] __main__ /here/app.pyz/"), "{ran:?}");

    let package = format!("{directory}/pkg");
    fs::remove_file(project.path().join("pkg/__main__.py")).unwrap();
    let ran = isolet(["run", &package]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    let said =
        format!("error: cannot run `{package}`: it is a directory without a `__main__.py`\n");
    assert_eq!(ran.stderr, said);
}

#[test]
fn an_option_among_the_arguments_of_a_program_is_said_when_it_is_missed() {
    let scratch = Scratch::new("misplaced");
    let script = scratch.file("x.py", "import sys\nprint(sys.argv[1:])\nimport nosuch\n");
    let ran = isolet(["run", &script, "--with", "nosuch"]);
    assert_eq!(ran.stdout, "['--with', 'nosuch']\n");
    let hint = "hint: `--with` comes after the program, so that it is one of the program's \
                arguments; isolet's options come before it\n";
    assert!(ran.stderr.ends_with(hint), "{ran:?}");
    let ran = isolet(["run", &script, "--nosuch"]);
    assert!(!ran.stderr.contains("comes after the program"), "{ran:?}");
}
