//! Tests of files: mounts as Python's own libraries use them, and the files that the owner writes
//! and reads.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use isolet_test_support::{Scratch, assets_dir, command};

#[test]
fn the_command_mounts_and_copies() {
    let scratch = Scratch::new("command-mount");
    let dir = scratch.path().join("data");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.txt"), "hello").unwrap();
    let mount = format!("{}:/data", dir.display());
    let code = "import os; print(os.listdir('/data')); open('/data/x', 'w')";
    let output = command(["run", "--mount", &mount, "-c", code]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "['a.txt']\n");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("PermissionError: ") && stderr.contains("'/data/x'"), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!dir.join("x").exists());

    let written = scratch.file("out.txt", "before");
    let directory = dir.to_str().unwrap();
    let code =
        "open('/sandbox/out.txt', 'w').write('after'); print(open('/sandbox/data/a.txt').read())";
    let output = command(["run", "--allow-write", &written, "--allow-read", directory, "-c", code])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "hello\n");
    assert_eq!(fs::read_to_string(&written).unwrap(), "after");
    let code = "open('/sandbox/out.txt', 'w').write('again')";
    command(["run", "--allow-read", &written, "-c", code]).output().unwrap();
    assert_eq!(fs::read_to_string(&written).unwrap(), "after");
}

#[test]
fn the_command_exports_an_overlay() {
    let scratch = Scratch::new("command-export");
    let dir = scratch.path().join("data");
    fs::create_dir(&dir).unwrap();
    let out = scratch.path().join("out");
    let mount = format!("{}:/data:overlay", dir.display());
    let export = format!("/data={}", out.display());
    let code = "open('/data/x.txt', 'w').write('x')";
    let output = command(["run", "--mount", &mount, "--export", &export, "-c", code]).output();
    assert_eq!(output.unwrap().status.code(), Some(0));
    assert_eq!(fs::read_to_string(out.join("x.txt")).unwrap(), "x");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

/// Files that the guest creates have the permissions that a program of the host would give them.
#[test]
fn what_is_made_in_a_writable_mount_follows_the_umask() {
    let scratch = Scratch::new("mount-umask");
    let code = "import os, tempfile\nopen('/data/file', 'w').close()\nos.mkdir('/data/directory')\n\
        os.makedirs('/data/deep/er')\nos.close(os.open('/data/asked', os.O_CREAT | os.O_WRONLY, 0o640))\n\
        os.close(tempfile.mkstemp(dir='/data', prefix='temporary')[0])\ntempfile.mkdtemp(dir='/data')";
    for umask in ["022", "027", "077", "002"] {
        let directory = |kind: &str| {
            let directory = scratch.path().join(format!("{kind}{umask}"));
            fs::create_dir(&directory).unwrap();
            directory
        };
        let shell = |program: &str, arguments: &[&str]| {
            let script = format!("umask {umask}; exec \"$@\"");
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", &script, "sh", program]).args(arguments);
            let output = shell.output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        let (ours, theirs) = (directory("isolet"), directory("python"));
        let isolet = command(["run"]);
        let program = isolet.get_program().to_str().unwrap();
        let mount = format!("{}:/data:rw", ours.display());
        let assets = assets_dir();
        let assets = assets.to_str().unwrap();
        shell(program, &["run", "--assets", assets, "--mount", &mount, "-c", code]);
        shell("python3", &["-c", &code.replace("/data", theirs.to_str().unwrap())]);
        assert_eq!(modes(&ours), modes(&theirs), "{umask}");
    }
}

/// Returns the permissions of everything in a directory, without the random parts of `tempfile`'s
/// names.
fn modes(root: &std::path::Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let name = ["temporary", "tmp"]
                .into_iter()
                .find(|made| name.starts_with(made))
                .map_or(name.clone(), str::to_owned);
            found.push((name, fs::metadata(&path).unwrap().permissions().mode() & 0o7777));
            if path.is_dir() {
                pending.push(path);
            }
        }
    }
    found.sort();
    found
}
