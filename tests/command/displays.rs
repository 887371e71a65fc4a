//! Tests of what a guest displays: in every format, in order with the output, within the limits.

use isolet_test_support::{Scratch, isolet};

/// A 1x1 picture.
const PNG: &str = "b'\\x89PNG\\r\\n\\x1a\\n' + bytes(20)";

#[test]
fn the_command_writes_them_to_files_and_tells_of_pictures() {
    let scratch = Scratch::new("displays");
    let directory = scratch.path().join("shown");
    let code = format!(
        "
class Picture:
    def _repr_png_(self): return {PNG}
    def _repr_html_(self): return '<img>'
print('before')
display(Picture())
display([1, 2])
Picture()"
    );
    let ran = isolet(["run", "--show-dir", directory.to_str().unwrap(), "-c", &code]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("before\n[1, 2]\n", ""));
    let mut files: Vec<String> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["001.html", "001.png", "002.txt", "003.html", "003.png"]);
    assert_eq!(std::fs::read(directory.join("001.png")).unwrap().len(), 28);

    let ran = isolet(["run", "-c", &code]);
    assert_eq!(ran.stdout, "before\n[1, 2]\n");
    assert_eq!(ran.stderr, "note: a picture was displayed; `--show-dir DIR` writes it to a file\n");

    let ran = isolet(["run", "--json", "-c", &code]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let shown = report["displays"].as_array().unwrap();
    assert_eq!(shown.len(), 3);
    assert_eq!(shown[0]["image/png"], "iVBORw0KGgoAAAAAAAAAAAAAAAAAAAAAAAAAAA==");
    assert_eq!(shown[1]["text/plain"], "[1, 2]");
}

#[test]
fn a_guest_does_not_choose_the_file_that_a_display_replaces() {
    let scratch = Scratch::new("displays-links");
    let victim = scratch.file("victim", "untouched");
    let directory = scratch.path().join("shared");
    std::fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(&victim, directory.join("001.txt")).unwrap();
    let mount = format!("{}:/shared:rw", directory.display());
    let shown = directory.to_str().unwrap();
    let code = "
import os
try: os.symlink('../victim', '/shared/002.txt')
except OSError: pass
display(1, 2)";
    isolet(["run", "--mount", &mount, "--show-dir", shown, "-c", code]);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(std::fs::read_to_string(directory.join("001.txt")).unwrap(), "1");
    assert!(directory.join("001.txt").symlink_metadata().unwrap().is_file());
}
