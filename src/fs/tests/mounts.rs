//! Tests of which mounts are refused: B3, B5 and B7.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::super::root::Root;
use super::super::sensitive_paths::check_with_home;
use super::*;
use crate::data::error::ErrorKind;

/// B3: mounting the host's root, the kernel's files or the system's settings needs a `dangerous_`
/// constructor.
#[test]
#[cfg(target_os = "linux")]
fn directories_that_give_away_the_host_are_refused_without_insisting() {
    for host in ["/", "/proc", "/sys", "/dev", "/etc", "/proc/self", "/dev/../etc"] {
        for mount in [Mount::read_only(host), Mount::overlay(host), Mount::read_write(host)] {
            assert_eq!(mount.unwrap_err().kind(), ErrorKind::Config, "{host}");
        }
        assert_eq!(Mount::dangerous_read_only(host).unwrap().mode(), MountMode::ReadOnly);
    }
    assert!(Mount::read_only("/usr").is_ok());
    assert!(Mount::read_write("/usr").is_err());
}

#[test]
fn a_link_to_a_refused_directory_is_refused() {
    let top = tempfile::tempdir().unwrap();
    symlink("/etc", top.path().join("link")).unwrap();
    let error = Mount::read_only(top.path().join("link")).unwrap_err();
    assert!(error.to_string().contains("`/etc`"), "{error}");
}

#[test]
fn the_home_directory_and_its_secrets_are_refused() {
    let top = tempfile::tempdir().unwrap();
    let home = top.path().join("home/user");
    for name in [".ssh", ".aws/cache", ".config/app", "work", ".local/bin"] {
        fs::create_dir_all(home.join(name)).unwrap();
    }
    let check = |host: PathBuf, mode| {
        check_with_home(&Root::open(&host).unwrap(), mode, Some(&home)).is_ok()
    };
    for name in ["", ".ssh", ".aws", ".aws/cache", ".config", ".config/app"] {
        assert!(!check(home.join(name), MountMode::ReadOnly), "{name}");
    }
    assert!(!check(top.path().join("home"), MountMode::ReadOnly));
    assert!(check(home.join("work"), MountMode::ReadWrite));
    assert!(check(home.join(".local/bin"), MountMode::ReadOnly));
    assert!(!check(home.join(".local/bin"), MountMode::ReadWrite));
}

#[test]
fn the_directory_of_a_container_engines_socket_is_refused() {
    let top = tempfile::tempdir().unwrap();
    let _socket = UnixListener::bind(top.path().join("docker.sock")).unwrap();
    assert!(Mount::read_only(top.path()).is_err());
    assert!(Mount::dangerous_read_only(top.path()).is_ok());
}

#[test]
fn only_directories_are_mounted() {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("file"), "").unwrap();
    for name in ["file", "none"] {
        let error = Mount::read_only(top.path().join(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_mount_stays_with_its_directory_when_the_path_is_replaced() {
    let guest = Guest::new(read_only);
    fs::rename(guest.host(), guest.top.path().join("elsewhere")).unwrap();
    symlink(guest.outside(), guest.host()).unwrap();
    assert_eq!(guest.read("hello.txt").unwrap(), "hello");
    assert_eq!(guest.read("secret").unwrap_err(), FileError::NotFound);
}

#[test]
fn guest_paths_are_absolute_normalised_and_not_the_interpreters() {
    let top = tempfile::tempdir().unwrap();
    let add = |guest: &str| {
        MountTable::default().add(guest, Mount::read_only(top.path()).unwrap()).is_ok()
    };
    for guest in ["/data", "/tmp/in", "/home/user", "/mnt", "/library", "/data/ä b"] {
        assert!(add(guest), "{guest}");
    }
    for guest in [
        "",
        "data",
        "/",
        "//",
        "/data/",
        "/data//x",
        "/data/../x",
        "/..",
        "/.",
        "/data/.",
        "/lib",
        "/lib/python3.14",
        "/proc",
        "/proc/self",
        "/dev",
        "/dev/shm",
        "/tmp",
        "/home",
        "/a\0b",
        "/a\nb",
        &format!("/{}", "x".repeat(2000)),
    ] {
        assert!(!add(guest), "{guest}");
    }
}

#[test]
fn guest_paths_do_not_repeat_or_nest() {
    let top = tempfile::tempdir().unwrap();
    let mount = Mount::read_only(top.path()).unwrap();
    let mut table = MountTable::default();
    table.add("/data/a", mount.clone()).unwrap();
    for guest in ["/data/a", "/data/a/b", "/data"] {
        assert!(table.add(guest, mount.clone()).is_err(), "{guest}");
    }
    table.add("/data/ab", mount).unwrap();
    assert_eq!(table.guest_paths().collect::<Vec<_>>(), ["/data/a", "/data/ab"]);
}

/// B5: what can be written through one mount cannot be seen through another.
#[test]
fn host_directories_do_not_overlap_if_one_can_be_written() {
    let top = tempfile::tempdir().unwrap();
    let path = |name: &str| top.path().join(name);
    fs::create_dir_all(path("a/inner")).unwrap();
    fs::create_dir_all(path("ab")).unwrap();
    symlink(path("a"), path("alias")).unwrap();
    let read_only = |name| Mount::read_only(path(name)).unwrap();
    let read_write = |name| Mount::read_write(path(name)).unwrap();
    let overlay = |name| Mount::overlay(path(name)).unwrap();
    let both = |one: Mount, two: Mount| {
        let mut table = MountTable::default();
        table.add("/one", one).unwrap();
        table.add("/two", two).is_ok()
    };
    for name in ["a", "a/inner", "alias", "alias/inner", ""] {
        assert!(!both(read_write("a"), read_only(name)), "{name}");
        assert!(!both(read_only(name), read_write("a")), "{name}");
        assert!(!both(overlay(name), read_write("a")), "{name}");
        assert!(both(overlay(name), read_only("a")), "{name}");
    }
    assert!(both(read_write("a"), read_write("ab")));
}

/// B5: bind mounts are detected. Mounting needs privileges, so the table is made up.
#[test]
fn bind_mounts_of_one_directory_overlap() {
    use super::super::overlap::overlapping;

    let table = "22 1 8:1 / / rw - ext4 /dev/sda rw\n\
                 30 22 8:1 /srv/data /mnt/da\\040ta rw - ext4 /dev/sda rw\n\
                 31 22 8:2 /srv/data /mnt/other rw - ext4 /dev/sdb rw\n\
                 garbage\n";
    let overlap = |one: &str, two: &str| overlapping(table, Path::new(one), Path::new(two));
    assert!(overlap("/mnt/da ta/x", "/srv/data"));
    assert!(overlap("/srv/data/x/y", "/mnt/da ta/x"));
    assert!(!overlap("/srv/data", "/mnt/other"));
    assert!(!overlap("/srv/database", "/mnt/da ta"));
}
