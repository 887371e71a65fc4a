//! Tests of hostile paths and links: B1 and B6.

use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

/// Puts links of every kind, to the secret and elsewhere, beneath a mount.
fn links(host: &Path) {
    let outside = host.parent().unwrap().join("outside");
    symlink(outside.join("secret"), host.join("absolute")).unwrap();
    symlink("../outside/secret", host.join("relative")).unwrap();
    symlink("../../outside/secret", host.join("dir/relative")).unwrap();
    symlink(&outside, host.join("directory")).unwrap();
    symlink("../outside", host.join("relative-directory")).unwrap();
    symlink("relative-directory", host.join("chain")).unwrap();
    symlink("dir", host.join("inside")).unwrap();
    symlink("..", host.join("dir/up")).unwrap();
    symlink("loop", host.join("loop")).unwrap();
}

const LINKS: [&str; 9] = [
    "absolute",
    "relative",
    "dir/relative",
    "directory",
    "relative-directory",
    "chain",
    "inside",
    "dir/up",
    "loop",
];

/// B1: no link is followed, as the last name or on the way.
#[test]
fn links_lead_nowhere() {
    for mount in [read_only, overlay, read_write] {
        let guest = Guest::with(mount, FileLimits::default(), links);
        let outside = snapshot(&guest.outside());
        for link in LINKS {
            assert_eq!(guest.stat(link).unwrap().kind, FileKind::Link, "{link}");
            assert!(guest.open(link, READ).is_err(), "{link}");
            assert!(guest.open(link, CREATE).is_err(), "{link}");
            assert!(guest.set_size(link, 0).is_err(), "{link}");
            assert!(guest.set_mode(link, 0o777).is_err(), "{link}");
            assert!(guest.set_times(link, 0.0).is_err(), "{link}");
            assert!(guest.list(link).is_err(), "{link}");
            for beneath in ["secret", "deep.txt", "hello.txt", "../outside/secret"] {
                let errors = guest.try_everything(&format!("{link}/{beneath}"));
                assert_eq!(errors.len(), 11, "{link}/{beneath}: {errors:?}");
            }
            assert!(guest.write(&format!("{link}/new"), "x").is_err(), "{link}");
            assert!(guest.make_directory(&format!("{link}/new")).is_err(), "{link}");
            assert!(guest.make_link(&format!("{link}/new"), "x").is_err(), "{link}");
            assert!(guest.rename("hello.txt", &format!("{link}/new")).is_err(), "{link}");
        }
        assert_eq!(snapshot(&guest.outside()), outside);
    }
}

/// B10: targets that are absolute or leave the mount are not revealed.
#[test]
fn only_targets_that_stay_inside_are_told() {
    for mount in [read_only, overlay, read_write] {
        let guest = Guest::with(mount, FileLimits::default(), links);
        for link in ["absolute", "relative", "dir/relative", "directory", "relative-directory"] {
            assert_eq!(guest.read_link(link).unwrap_err().errno(), 2, "{link}");
        }
        assert_eq!(guest.read_link("inside").unwrap(), "dir");
        assert_eq!(guest.read_link("dir/up").unwrap(), "..");
        assert_eq!(guest.read_link("hello.txt").unwrap_err(), FileError::Invalid);
    }
}

/// B1: links that the guest creates are relative and stay inside, even after renames.
#[test]
fn links_of_the_guest_cannot_point_outside() {
    for mount in [overlay, read_write] {
        let guest = Guest::with(mount, FileLimits::default(), links);
        let targets = ["/etc/passwd", "..", "../x", "a/../../x", "./../x", "dir/../../outside"];
        for target in targets {
            assert_eq!(guest.make_link("mine", target).unwrap_err().errno(), 2, "{target}");
        }
        assert_eq!(guest.make_link("mine", "").unwrap_err(), FileError::Invalid);
        assert_eq!(guest.make_link("mine", "a\0b").unwrap_err(), FileError::Invalid);
        guest.make_link("mine", "dir//./deep.txt").unwrap();
        assert_eq!(guest.read_link("mine").unwrap(), "dir//./deep.txt");
        // A link with `..` cannot be made to lead out by moving it up.
        if guest.rename("dir/up", "up").is_ok() {
            assert_eq!(guest.read_link("up").unwrap_err().errno(), 2);
            assert_eq!(fs::symlink_metadata(guest.host().join("up")).ok().map(drop), None);
        }
    }
    let guest = Guest::new(read_write);
    assert_eq!(guest.make_link("dir/mine", "../hello.txt").unwrap_err().errno(), 2);
    let guest = Guest::new(overlay);
    guest.make_link("dir/mine", "../hello.txt").unwrap();
    assert_eq!(guest.read_link("dir/mine").unwrap(), "../hello.txt");
    guest.rename("dir/mine", "mine").unwrap();
    assert_eq!(guest.read_link("mine").unwrap_err().errno(), 2);
}

/// B6: anything but a plain relative path is refused before the host is asked.
#[test]
fn malformed_paths_are_refused() {
    let long_name = "n".repeat(256);
    let long_path = vec!["n".repeat(200); 21].join("/");
    let deep_path = vec!["d"; 65].join("/");
    let malformed = [
        "/",
        "/etc/passwd",
        "//",
        "hello.txt/",
        "dir//deep.txt",
        ".",
        "..",
        "./hello.txt",
        "dir/../hello.txt",
        "../outside/secret",
        "dir/..",
        "dir/.",
        "hello.txt\0",
        "\0",
        "a\0/b",
        &long_name,
        &long_path,
        &deep_path,
    ];
    for mount in [read_only, overlay, read_write] {
        let guest = Guest::new(mount);
        let before = snapshot(guest.top.path());
        for path in malformed {
            let errors = guest.try_everything(path);
            assert_eq!(errors.len(), 11, "{path:?}: {errors:?}");
            assert!(guest.open(path, CREATE).is_err(), "{path:?}");
            assert!(guest.make_directory(path).is_err(), "{path:?}");
            assert!(guest.rename("hello.txt", path).is_err(), "{path:?}");
        }
        assert_eq!(snapshot(guest.top.path()), before);
    }
}

/// B6: characters that have a meaning elsewhere are plain characters.
#[test]
fn odd_names_are_names() {
    for mount in [overlay, read_write] {
        let guest = Guest::new(mount);
        for name in ["...", "..\\outside", "%2e%2e", "..%2f", "~", "a b. ", "\u{202e}", "-rf", "ﬁ"]
        {
            guest.write(name, name).unwrap();
            assert_eq!(guest.read(name).unwrap(), name);
            assert!(guest.list("").unwrap().iter().any(|listed| listed == name), "{name}");
        }
    }
}

#[test]
fn names_that_are_not_utf8_are_left_out() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let guest = Guest::with(overlay, FileLimits::default(), |host| {
        fs::write(host.join(OsStr::from_bytes(b"bad\xff")), "x").unwrap();
    });
    assert_eq!(guest.list("").unwrap(), ["dir", "hello.txt"]);
}

fn path() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("dir".to_owned()),
        Just("inner".to_owned()),
        Just("hello.txt".to_owned()),
        Just("outside".to_owned()),
        Just("secret".to_owned()),
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just(String::new()),
        Just("directory".to_owned()),
        Just("up".to_owned()),
        any::<String>(),
        "[./\\\\%~\\x00 a]{0,8}",
    ];
    prop::collection::vec(name, 0..6).prop_map(|names| names.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// B6: any string is a path inside the mount or an error; nothing outside is read or changed.
    #[test]
    fn any_path_is_inside_or_an_error(paths in prop::collection::vec((path(), path()), 1..5)) {
        for mount in [overlay, read_write] {
            let guest = Guest::with(mount, FileLimits::default(), links);
            let outside = snapshot(&guest.outside());
            for (one, other) in &paths {
                for path in [one, other] {
                    if let Ok(text) = guest.read(path) {
                        prop_assert!(!text.contains(SECRET));
                        prop_assert!(guest.host().join(path).starts_with(guest.host()));
                    }
                    let _ = guest.make_directory(path);
                    let _ = guest.write(path, "changed");
                    let _ = guest.make_link(path, other);
                }
                let _ = guest.rename(one, other);
                let _ = guest.try_everything(one);
            }
            prop_assert_eq!(&snapshot(&guest.outside()), &outside);
            prop_assert_eq!(fs::read_dir(guest.top.path()).unwrap().count(), 2);
        }
    }
}
