//! Tests of the events that the owner gets, and of what the guest must not see: B10.

use super::super::error::Denial;
use super::*;

fn told(guest: &Guest) -> Vec<String> {
    let shown = |event: FileEvent| {
        let verdict = if event.allowed { "allowed" } else { "denied" };
        format!("{verdict} {} {} {}", event.operation, event.path, event.reason).trim().to_owned()
    };
    std::mem::take(&mut *guest.events.lock().unwrap()).into_iter().map(shown).collect()
}

#[test]
fn changes_and_denials_are_told() {
    let guest = Guest::new(|host| overlay(host).quota_bytes(8));
    guest.read("hello.txt").unwrap();
    let file = guest.open("new", CREATE).unwrap();
    guest.write_to(file, 0, b"1234").unwrap();
    guest.write_to(file, 0, b"123456789").unwrap_err();
    guest.set_size("new", 0).unwrap();
    guest.make_directory("made").unwrap();
    guest.rename("new", "made/new").unwrap();
    guest.make_link("link", "made/new").unwrap();
    guest.make_link("link2", "/etc").unwrap_err();
    guest.remove("link").unwrap();
    guest.remove("none").unwrap_err();
    guest.list("../outside").unwrap_err();
    guest.stat("hello.txt").unwrap();
    assert_eq!(
        told(&guest),
        [
            "allowed open /data/hello.txt",
            "allowed create /data/new",
            "denied write /data/new the mount's quota is used up: limit 8 bytes, needed 9",
            "allowed truncate /data/new",
            "allowed create /data/made",
            "allowed rename /data/new to made/new",
            "allowed link /data/link to made/new",
            "denied link /data/link2 the link's target is absolute or may leave the mount",
            "allowed remove /data/link",
            "denied list /data/../outside the argument or path is malformed",
        ]
    );
    let guest = Guest::new(read_only);
    guest.write("hello.txt", "x").unwrap_err();
    assert_eq!(told(&guest), ["denied create /data/hello.txt the mount is read-only"]);
}

#[test]
fn what_could_not_be_told_does_not_happen() {
    let mut guest = Guest::new(read_write);
    let kept = guest.open("hello.txt", UPDATE).unwrap();
    guest.files = guest.files.gated(Arc::new(|| false));
    guest.events.lock().unwrap().clear();
    let denied = FileError::Access(Denial::Unlogged);
    assert_eq!(guest.read("hello.txt"), Err(denied));
    assert_eq!(guest.write("new", "x"), Err(denied));
    assert_eq!(guest.make_directory("made"), Err(denied));
    assert_eq!(guest.remove_directory("dir/inner"), Err(denied));
    assert_eq!(guest.remove("hello.txt"), Err(denied));
    assert_eq!(guest.rename("hello.txt", "new"), Err(denied));
    assert_eq!(guest.make_link("link", "hello.txt"), Err(denied));
    assert_eq!(guest.set_size("hello.txt", 0), Err(denied));
    let emptied = guest.files.call(FileRequest::SetFileSize { file: kept, size: 0 });
    assert_eq!(emptied, Err(denied));
    assert_eq!(told(&guest).iter().filter(|event| event.starts_with("denied ")).count(), 9);
    // Nothing has changed on the host.
    assert_eq!(fs::read_to_string(guest.host().join("hello.txt")).unwrap(), "hello");
    assert!(guest.host().join("dir/inner").exists());
    for name in ["new", "made", "link"] {
        assert!(fs::symlink_metadata(guest.host().join(name)).is_err(), "{name}");
    }
    // What is no event needs nobody.
    assert_eq!(guest.read_from(kept).unwrap(), b"hello");
    assert!(guest.stat("hello.txt").is_ok() && guest.list("").is_ok());
}

/// B10: no error and no event contains a host path.
#[test]
fn nothing_names_a_path_of_the_host() {
    for mount in [read_only, overlay, read_write] {
        let guest = Guest::new(mount);
        let top = guest.top.path().to_str().unwrap().to_owned();
        let mut shown = Vec::new();
        for path in ["none", "hello.txt/x", "..", "dir", "/", "none/none", ""] {
            shown.push(format!("{:?} {:?}", guest.read(path), guest.stat(path)));
            shown.push(format!("{:?} {:?}", guest.list(path), guest.remove_directory(path)));
            shown.push(format!("{:?} {:?}", guest.write(path, "x"), guest.rename(path, "y")));
        }
        for event in &*guest.events.lock().unwrap() {
            shown.push(format!("{event:?}"));
        }
        let shown = shown.concat();
        assert!(!shown.contains(&top) && !shown.contains("mounted"), "{shown}");
    }
}

#[test]
fn a_path_that_is_too_long_is_told_cut() {
    let guest = Guest::new(read_only);
    guest.stat(&"é".repeat(1_000_000)).unwrap_err();
    let events = guest.events.lock().unwrap();
    assert_eq!(events[0].path.len(), "/data/".len() + 4096);
}
