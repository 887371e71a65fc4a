//! Part B of the threat table: files beneath mount points, and a guest's attempts to get out of
//! them. `src/fs/tests` contains the tests of races and of the spellings of paths.

use std::fs;
use std::os::unix::fs::symlink;

use isolet_test_support::mounted_tree::{CANARY, snapshot, world};
use isolet_test_support::{Ran, command};

/// B12: written-back and exported files go where their path led before the guest ran.
#[test]
fn a_path_that_the_guest_has_changed_leads_what_is_written_back_nowhere() {
    let (scratch, root) = world("write-back");
    let secret = scratch.path().join("secret.txt");
    let outside = scratch.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("b.txt"), CANARY).unwrap();
    // The guest can create links to these links, which lead out.
    symlink(scratch.path(), root.join("up")).unwrap();
    symlink(&outside, root.join("outside")).unwrap();
    let overlaid = scratch.path().join("overlaid");
    for made in ["overlaid", "elsewhere", "copies"] {
        fs::create_dir(scratch.path().join(made)).unwrap();
    }
    let swaps = "import os\nos.chdir('/data')\nos.remove('a.txt')\nos.symlink('up/secret.txt', 'a.txt')\n\
        os.rename('sub', 'old')\nos.symlink('outside', 'sub')\nopen('/over/b.txt', 'w').write('evil')\n\
        for name in ('a.txt', 'b.txt'): open('/sandbox/' + name, 'w').write('evil')\nprint('swapped')";
    let in_root = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let arguments = [
        "run".to_owned(),
        "--mount".to_owned(),
        format!("{}:/data:rw", root.display()),
        "--mount".to_owned(),
        format!("{}:/over:overlay", overlaid.display()),
    ];
    let run = |more: &[String]| {
        let arguments = arguments.iter().chain(more).map(String::as_str).chain(["-c", swaps]);
        let ran: Ran = command(arguments).output().unwrap().into();
        assert_eq!(ran.stdout, "swapped\n", "{ran:?}");
        fs::remove_file(root.join("a.txt")).unwrap();
        fs::write(root.join("a.txt"), "hello").unwrap();
        fs::remove_file(root.join("sub")).unwrap();
        fs::rename(root.join("old"), root.join("sub")).unwrap();
        ran.stderr
    };
    let write = |name: &str| ["--allow-write".to_owned(), in_root(name)];
    let wanted = [write("a.txt"), write("sub/b.txt")].concat();
    let stderr = run(&wanted);
    assert!(stderr.contains("a.txt` cannot be written"), "{stderr}");
    // The directory was opened before, so the file in it is written, wherever the directory is now.
    fs::write(root.join("sub/b.txt"), "there").unwrap();
    let also = scratch.file("elsewhere/a.txt", "");
    let stderr =
        run(&[vec!["--allow-write".to_owned(), also], write("sub/b.txt").to_vec()].concat());
    assert_eq!(stderr, "");
    assert_eq!(fs::read_to_string(root.join("sub/b.txt")).unwrap(), "evil");
    let sources = [scratch.file("copies/a.txt", ""), scratch.file("copies/b.txt", "")];
    let read = |path: &String| ["--allow-read".to_owned(), path.clone()];
    let mut wanted: Vec<_> = sources.iter().flat_map(read).collect();
    wanted.extend(["--export".to_owned(), format!("/over={}", in_root("sub/exported"))]);
    let stderr = run(&wanted);
    assert_eq!(stderr, "");
    assert_eq!(fs::read_to_string(root.join("sub/exported/b.txt")).unwrap(), "evil");
    assert_eq!(fs::read_to_string(secret).unwrap(), CANARY);
    let outside = snapshot(&outside);
    assert_eq!(outside.len(), 1, "{outside:?}");
    assert_eq!(outside[0].1, CANARY.as_bytes());
}
