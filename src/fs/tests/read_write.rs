//! Tests of mounts that write through to the host.

use std::os::unix::fs::symlink;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn changes_reach_the_host() {
    let guest = Guest::new(read_write);
    guest.write("new.txt", "new").unwrap();
    guest.write("hello.txt", "bye").unwrap();
    guest.append("hello.txt", "!").unwrap();
    guest.make_directory("made").unwrap();
    guest.rename("new.txt", "made/moved.txt").unwrap();
    guest.remove("dir/deep.txt").unwrap();
    let file = guest.open("new", CREATE).unwrap();
    guest.files.call(FileRequest::Sync { file }).unwrap();
    guest.set_times("made/moved.txt", 1_500_000_000_123.9).unwrap();
    let host = guest.host();
    assert_eq!(fs::read_to_string(host.join("hello.txt")).unwrap(), "bye!");
    assert_eq!(fs::read_to_string(host.join("made/moved.txt")).unwrap(), "new");
    assert!(!host.join("new.txt").exists());
    assert!(!host.join("dir/deep.txt").exists());
    let stat = guest.stat("made/moved.txt").unwrap();
    assert!((stat.modified_ms - 1_500_000_000_123.0).abs() < 0.5);
}

/// Files and directories get the same permissions as those of the host's own programs.
#[test]
fn what_is_made_has_the_permissions_that_the_umask_leaves() {
    let guest = Guest::new(read_write);
    let (host, outside) = (guest.host(), guest.outside());
    guest.write("new", "").unwrap();
    fs::write(outside.join("new"), "").unwrap();
    guest.make_directory("made").unwrap();
    fs::create_dir(outside.join("made")).unwrap();
    for name in ["new", "made"] {
        assert_eq!(mode(&host.join(name)), mode(&outside.join(name)), "{name}");
    }
    let path = "private";
    let request = FileRequest::MakeDirectory { mount: 0, path, mode: 0o7700 };
    guest.files.call(request).unwrap();
    assert_eq!(mode(&host.join("private")), 0o700);
}

/// B7: nothing that the guest creates or changes becomes executable or accessible to others.
#[test]
fn nothing_becomes_executable_or_readable_by_others() {
    let guest = Guest::with(read_write, FileLimits::default(), |host| {
        fs::write(host.join("tool"), "tool").unwrap();
        fs::set_permissions(host.join("tool"), fs::Permissions::from_mode(0o754)).unwrap();
    });
    let host = guest.host();
    guest.write("script", "#!/bin/sh").unwrap();
    assert_eq!(mode(&host.join("script")) & 0o7111, 0);
    guest.set_mode("script", 0o600).unwrap();
    guest.make_directory("made").unwrap();
    guest.set_mode("made", 0o700).unwrap();
    for (asked, expected) in [(0o7777, 0o600), (0o444, 0o400), (0, 0o400), (0o666, 0o600)] {
        guest.set_mode("script", asked).unwrap();
        assert_eq!(mode(&host.join("script")), expected, "{asked:o}");
    }
    guest.set_mode("tool", 0o777).unwrap();
    assert_eq!(mode(&host.join("tool")), 0o644);
    guest.set_mode("made", 0o777).unwrap();
    assert_eq!(mode(&host.join("made")), 0o700);
    guest.set_mode("made", 0).unwrap();
    assert_eq!(mode(&host.join("made")), 0o500);
}

/// B12: a link of the host that leads out of the mount cannot be moved.
#[test]
fn a_link_that_leads_out_is_not_moved() {
    let targets =
        ["/etc/passwd", "../outside/secret", "dir/../../outside/secret", "dir/../hello.txt"];
    for target in targets {
        let guest = Guest::with(read_write, FileLimits::default(), |host| {
            symlink(target, host.join("link")).unwrap();
            symlink("../../outside/secret", host.join("dir/inner/up")).unwrap();
        });
        let before = snapshot(guest.top.path());
        for (from, to) in [("link", "hello.txt"), ("link", "new"), ("dir/inner/up", "dir/up")] {
            let error = guest.rename(from, to).unwrap_err();
            assert!(error.is_denial() && error.errno() == 2, "{target} {from}: {error}");
        }
        assert_eq!(snapshot(guest.top.path()), before, "{target}");
        // At the same depth, it leads where it led before.
        guest.rename("dir/inner/up", "dir/inner/up2").unwrap();
        guest.remove("link").unwrap();
    }
}

/// B12: a directory is moved only if the links in it lead where they led before.
#[test]
fn a_directory_with_a_link_that_leads_out_of_it_is_not_moved() {
    for (place, target) in [
        ("dir/link", "../hello.txt"),
        ("dir/inner/link", "../../../outside/secret"),
        ("dir/inner/link", "/etc/passwd"),
        ("dir/inner/link", "deeper.txt/../../x"),
    ] {
        let guest = Guest::with(read_write, FileLimits::default(), |host| {
            symlink(target, host.join(place)).unwrap();
            fs::create_dir(host.join("empty")).unwrap();
        });
        let before = snapshot(guest.top.path());
        for to in ["moved", "empty"] {
            let error = guest.rename("dir", to).unwrap_err();
            assert!(error.is_denial() && error.errno() == 2, "{place}: {error}");
        }
        assert_eq!(snapshot(guest.top.path()), before, "{place}");
    }
    let guest = Guest::with(read_write, FileLimits::default(), |host| {
        symlink("../deep.txt", host.join("dir/inner/link")).unwrap();
        symlink("inner", host.join("dir/plain")).unwrap();
    });
    guest.rename("dir", "moved").unwrap();
    assert_eq!(guest.read_link("moved/inner/link").unwrap(), "../deep.txt");
}

#[test]
fn a_directory_with_more_than_can_be_listed_is_not_moved() {
    let limits = FileLimits { list_entries: 4, ..FileLimits::default() };
    let guest = Guest::with(read_write, limits, |_| ());
    guest.rename("dir", "moved").unwrap();
    guest.write("moved/one", "").unwrap();
    guest.write("moved/two", "").unwrap();
    let error = guest.rename("moved", "again").unwrap_err();
    assert_eq!(error, FileError::TooManyEntries { limit: 4 });
}

#[test]
fn appending_ignores_offsets() {
    let guest = Guest::new(read_write);
    let file = guest.open("hello.txt", APPEND).unwrap();
    guest.write_to(file, 0, b" one").unwrap();
    guest.append("hello.txt", " two").unwrap();
    guest.write_to(file, 1, b" three").unwrap();
    assert_eq!(guest.read("hello.txt").unwrap(), "hello one two three");
}

#[test]
fn handles_outlive_rename_and_removal() {
    for mount in [read_write, overlay] {
        let guest = Guest::new(mount);
        let file = guest.open("hello.txt", UPDATE).unwrap();
        guest.rename("hello.txt", "moved").unwrap();
        guest.write_to(file, 0, b"J").unwrap();
        assert_eq!(guest.read("moved").unwrap(), "Jello");
        guest.remove("moved").unwrap();
        guest.write_to(file, 5, b"!").unwrap();
        assert_eq!(guest.read_from(file).unwrap(), b"Jello!");
        assert_eq!(guest.stat_file(file).size, 6);
        assert_eq!(guest.list("").unwrap(), ["dir"]);
    }
}

#[test]
fn exclusive_creation_and_truncation_are_posix() {
    for mount in [read_write, overlay] {
        let guest = Guest::new(mount);
        let exclusive = OpenFlags { exclusive: true, ..CREATE };
        assert_eq!(guest.open("hello.txt", exclusive).unwrap_err(), FileError::Exists);
        guest.open("new", exclusive).unwrap();
        guest.set_size("hello.txt", 2).unwrap();
        guest.set_size("hello.txt", 4).unwrap();
        assert_eq!(guest.read("hello.txt").unwrap(), "he\0\0");
        assert_eq!(guest.set_size("dir", 0).unwrap_err(), FileError::IsDirectory);
        assert_eq!(guest.set_size("none", 0).unwrap_err(), FileError::NotFound);
        let flags = OpenFlags { truncate: true, ..READ };
        assert_eq!(guest.open("hello.txt", flags).unwrap_err(), FileError::Invalid);
        assert_eq!(guest.open("hello.txt", OpenFlags::default()).unwrap_err(), FileError::Invalid);
        for time in [f64::NAN, f64::INFINITY, -9e15, 1e300] {
            assert_eq!(guest.set_times("hello.txt", time).unwrap_err(), FileError::Invalid);
        }
        guest.set_times("hello.txt", -1000.0).unwrap();
    }
}

#[test]
fn the_root_cannot_be_removed_or_moved() {
    for mount in [read_write, overlay] {
        let guest = Guest::new(mount);
        assert_eq!(guest.remove_directory("").unwrap_err(), FileError::Busy);
        assert_eq!(guest.rename("", "x").unwrap_err(), FileError::Busy);
        assert_eq!(guest.rename("dir", "").unwrap_err(), FileError::Busy);
        assert_eq!(guest.make_directory("").unwrap_err(), FileError::Exists);
        assert_eq!(guest.open("", READ).unwrap_err(), FileError::IsDirectory);
        assert_eq!(guest.rename("dir", "dir/inner/x").unwrap_err(), FileError::Invalid);
    }
}

#[test]
fn directories_get_no_deeper_than_the_limit_by_being_moved() {
    let limits = FileLimits { depth: 4, ..FileLimits::default() };
    for mount in [read_write, overlay] {
        let guest = Guest::with(mount, limits.clone(), |_| ());
        guest.make_directory("a").unwrap();
        guest.make_directory("a/b").unwrap();
        guest.make_directory("a/b/c").unwrap();
        guest.make_directory("x").unwrap();
        guest.write("x/f", "").unwrap();
        let error = guest.rename("x", "a/b/c/x").unwrap_err();
        assert_eq!(error, FileError::TooDeep { limit: 4, needed: 5 });
        guest.rename("x", "a/b/x").unwrap();
        let error = guest.make_directory("a/b/c/d/e").unwrap_err();
        assert_eq!(error, FileError::TooDeep { limit: 4, needed: 5 });
    }
}
