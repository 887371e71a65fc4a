//! Tests of special files: B3 and B4.

use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

fn specials(host: &Path) {
    let make = |name: &str, kind, device| mknodat(CWD, host.join(name), kind, Mode::RUSR, device);
    make("fifo", FileType::Fifo, 0).unwrap();
    UnixListener::bind(host.join("socket")).unwrap();
    // Only root may create devices.
    let _ = make("device", FileType::CharacterDevice, rustix::fs::makedev(1, 5));
}

/// B4: FIFOs, sockets and devices are not listed, and nothing waits for them.
#[test]
fn special_files_are_neither_listed_nor_opened() {
    for mount in [read_only, overlay, read_write] {
        let guest = Guest::with(mount, FileLimits::default(), specials);
        assert_eq!(guest.list("").unwrap(), ["dir", "hello.txt"]);
        let before = snapshot(&guest.host());
        for name in ["fifo", "socket", "device"] {
            if !before.contains_key(&guest.host().join(name)) {
                continue;
            }
            assert_eq!(guest.stat(name).unwrap_err().errno(), 2, "{name}");
            for flags in [READ, WRITE, UPDATE, APPEND, CREATE] {
                assert_eq!(guest.open(name, flags).unwrap_err().errno(), 2, "{name} {flags:?}");
            }
            let errors = guest.try_everything(name);
            assert_eq!(errors.len(), 11, "{name} {errors:?}");
            assert!(guest.rename("hello.txt", name).is_err(), "{name}");
        }
        assert_eq!(snapshot(&guest.host()), before);
    }
}

/// B4: a FIFO with a reader at its other end is closed again without a byte written.
#[test]
fn a_fifo_with_a_reader_gets_nothing() {
    use std::io::Read;

    let guest = Guest::with(read_write, FileLimits::default(), specials);
    let fifo = guest.host().join("fifo");
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::RDONLY;
    let reader = rustix::fs::open(&fifo, flags, Mode::empty()).unwrap();
    assert_eq!(guest.write("fifo", "text").unwrap_err().errno(), 2);
    assert_eq!(guest.open("fifo", WRITE).unwrap_err().errno(), 2);
    let mut text = String::new();
    fs::File::from(reader).read_to_string(&mut text).unwrap();
    assert_eq!(text, "");
}

/// B3: even when the whole host is mounted, the kernel's files are not shown.
#[test]
fn the_kernels_files_are_not_shown_beneath_the_root_directory() {
    for mount in [Mount::dangerous_read_only("/"), Mount::dangerous_overlay("/")] {
        let guest = Guest::new(|_| mount.unwrap());
        assert!(guest.list("").unwrap().iter().any(|name| name == "proc"));
        for path in [
            "proc/self/environ",
            "proc/self/mem",
            "proc/self/maps",
            "proc/self/fd/0",
            "proc/version",
            "proc/self/root/etc/passwd",
            "proc/1/environ",
            "proc/sys/kernel/hostname",
            "dev/null",
            "dev/mem",
            "sys/kernel/uevent_seqnum",
            "dev/shm/x",
        ] {
            assert_eq!(guest.stat(path).unwrap_err().errno(), 2, "{path}");
            assert_eq!(guest.read(path).unwrap_err().errno(), 2, "{path}");
            assert!(guest.read_link(path).is_err(), "{path}");
        }
        for directory in ["proc", "proc/self", "sys", "dev"] {
            assert_eq!(guest.list(directory).unwrap_err().errno(), 2, "{directory}");
        }
        assert!(guest.read("etc/passwd").is_ok());
    }
}
