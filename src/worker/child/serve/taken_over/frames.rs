//! Attempts by frames: a worker that was taken over asks its parent for what its session may not
//! have, and says what is not so.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Attempt, Harm, TakenOver};
use crate::data::isolation::IsolationReport;
use crate::fs::{FileReply, FileRequest, OpenFlags};
use crate::protocol::{Host, HostReply, HostRequest, Inbox, Message, NetRequest, Reply};
use crate::worker::wire::output_ring::{CAPACITY, END, RECORDS};
use crate::worker::wire::{self, FromWorker};

const KIND: &str = "JavaScript and the embedding program";

/// The mounts that a session may have, and some that none has.
const MOUNTS: [u32; 5] = [0, 1, 2, 1 << 20, u32::MAX];

pub(super) const ATTEMPTS: &[Attempt] = &[
    attempt(
        "frames: paths out of a mount",
        "Opens the flag's file beneath every mount, by paths that lead out of it.",
        |taken| {
            open_outside(taken);
            Ok(())
        },
    ),
    attempt(
        "frames: links out of a mount",
        "Makes links to the flag's file, moves them, and reads through them.",
        |taken| {
            link_outside(taken);
            Ok(())
        },
    ),
    attempt(
        "frames: numbers of open files",
        "Reads open files by numbers that the host has not given to it.",
        |taken| {
            read_numbers(taken);
            Ok(())
        },
    ),
    attempt(
        "frames: changes outside of a mount",
        "Renames, removes, truncates and makes files outside of the mount.",
        |taken| {
            change_outside(taken);
            Ok(())
        },
    ),
    attempt(
        "frames: requests to the server",
        "Asks the host to request the flag from the server, in every form.",
        |taken| {
            ask_server(taken);
            Ok(())
        },
    ),
    attempt(
        "frames: exchanges of others",
        "Reads and sends by numbers of exchanges that are another session's.",
        |taken| {
            read_exchanges(taken);
            Ok(())
        },
    ),
    attempt("frames: tools of others", "Calls tools that the session was not given.", |taken| {
        call_tools(taken);
        Ok(())
    }),
    attempt(
        "frames: packages and libraries",
        "Has the host load the flag's file as a package or a library.",
        |taken| {
            load_libraries(taken);
            Ok(())
        },
    ),
    attempt(
        "frames: saved sessions",
        "Reads and writes saved sessions that nobody has asked for.",
        |taken| {
            read_saved(taken);
            Ok(())
        },
    ),
    attempt(
        "frames: standard input",
        "Reads what the host has been given on its standard input.",
        |taken| {
            for _ in 0..3 {
                taken.say(taken.host.call(HostRequest::ReadStdin(1 << 20)));
            }
            Ok(())
        },
    ),
    attempt(
        "frames: files that were written",
        "Says that it has written the flag's file, and shows it.",
        |taken| {
            let path = &taken.target.file;
            for path in
                [path.as_str(), "/data/../secret/flag", "/data/notes.txt\0/../../secret/flag"]
            {
                taken.host.call(HostRequest::FileWritten { path, size: u64::MAX });
            }
            taken.host.call(HostRequest::Display(b"{u\x04\0\0\0pathu\x0e\0\0\0../secret/flag0"));
            Ok(())
        },
    ),
    attempt(
        "frames: more output than there is",
        "Says that there is output beyond the end of the memory for it.",
        |taken| {
            // What the parent reads is what is there when it comes to it.
            taken.ring[END].store(u64::MAX, Ordering::SeqCst);
            taken.host.tell(&FromWorker::Output { to: u64::MAX })?;
            wait_to_be_killed();
            Ok(())
        },
    ),
    attempt(
        "frames: records that lie",
        "Writes records into the memory for output that are longer than it.",
        |taken| {
            for (word, length) in (RECORDS..RECORDS + 1000)
                .zip([u64::MAX, 1 << 31, CAPACITY * 8, 0].into_iter().cycle())
            {
                taken.ring[word].store(length, Ordering::Relaxed);
            }
            taken.ring[END].store(CAPACITY, Ordering::SeqCst);
            taken.host.tell(&FromWorker::Output { to: CAPACITY })?;
            wait_to_be_killed();
            Ok(())
        },
    ),
    attempt(
        "frames: a length without an end",
        "Sends frames that claim to be longer than all memory.",
        |taken| {
            let mailbox = taken.connection.get().ok_or(io::ErrorKind::NotConnected)?;
            mailbox.send(u64::MAX.to_le_bytes().to_vec(), &[0; 100])
        },
    ),
    attempt("frames: bytes that are no frame", "Sends frames of random bytes.", |taken| {
        let mailbox = taken.connection.get().ok_or(io::ErrorKind::NotConnected)?;
        for _ in 0..100 {
            let mut frame = [0; 64];
            getrandom::fill(&mut frame).map_err(io::Error::other)?;
            mailbox.send(64_u64.to_le_bytes().to_vec(), &frame)?;
        }
        Ok(())
    }),
    attempt(
        "frames: readiness again",
        "Says again that it is ready, with other layers in force.",
        |taken| {
            let (version, report) = (wire::version(), IsolationReport::thread());
            taken.host.tell(&FromWorker::Ready { version: &version, report })?;
            taken.host.tell(&FromWorker::NotForked(0))?;
            taken.host.tell(&FromWorker::NotReady("not so"))?;
            wait_to_be_killed();
            Ok(())
        },
    ),
    attempt(
        "frames: replies unasked",
        "Replies to commands that nobody has sent, of this session and of others.",
        |taken| {
            for number in 0..8 {
                taken.host.reply(Reply::Peeked {
                    number,
                    refusal: None,
                    report: super::REPORT.to_vec(),
                })?;
            }
            Ok(())
        },
    ),
];

const fn attempt(
    name: &'static str,
    what: &'static str,
    run: fn(&TakenOver) -> io::Result<()>,
) -> Attempt {
    Attempt { name, kind: KIND, what, source: "", harm: Harm::None, run }
}

/// Writes nothing more for a moment, so that the parent sees what was written.
fn wait_to_be_killed() {
    std::thread::sleep(Duration::from_secs(1));
}

/// Returns paths that may lead to the flag's file.
fn paths(taken: &TakenOver) -> Vec<String> {
    let file = &taken.target.file;
    let ups = (1..6).map(|ups| format!("{}secret/flag", "../".repeat(ups)));
    let odd = [
        "..//secret/flag",
        "./../secret/flag",
        "notes.txt/../../secret/flag",
        "..\0/secret/flag",
        "..",
        "/",
        ".",
        "//",
    ];
    ups.chain(odd.map(str::to_owned))
        .chain([file.clone(), file[1..].to_owned(), format!("/proc/self/root{file}")])
        .collect()
}

/// Makes a request of a file, and says what the host answers; gives what it opened.
fn try_file(taken: &TakenOver, request: FileRequest<'_>) {
    let reply = taken.host.call(HostRequest::File(request));
    if let HostReply::File(Ok(FileReply::File(file))) = reply {
        let mut bytes = vec![0; 4096];
        let read = taken.host.read_file(file, 0, &mut bytes);
        taken.say(read);
        taken.give(&bytes);
    }
    taken.say(reply);
}

fn open_outside(taken: &TakenOver) {
    let flags = OpenFlags { read: true, ..OpenFlags::default() };
    for mount in MOUNTS {
        for path in paths(taken) {
            try_file(taken, FileRequest::Open { mount, path: &path, flags });
            try_file(taken, FileRequest::List { mount, path: &path });
            try_file(taken, FileRequest::Stat { mount, path: &path });
            try_file(taken, FileRequest::ReadLink { mount, path: &path });
        }
    }
}

fn link_outside(taken: &TakenOver) {
    let flags = OpenFlags { read: true, ..OpenFlags::default() };
    try_file(taken, FileRequest::MakeDirectory { mount: 0, path: "a", mode: 0o777 });
    for target in paths(taken) {
        for path in ["link", "a/link"] {
            try_file(taken, FileRequest::MakeLink { mount: 0, path, target: &target });
            try_file(taken, FileRequest::Rename { mount: 0, from: path, to: "moved" });
            for path in [path, "moved", "moved/flag", "link/secret/flag"] {
                try_file(taken, FileRequest::Open { mount: 0, path, flags });
            }
            try_file(taken, FileRequest::Remove { mount: 0, path: "moved" });
        }
    }
}

fn read_numbers(taken: &TakenOver) {
    let numbers = (0..2000).chain([1 << 16, 1 << 31, u32::MAX]);
    for file in numbers {
        let mut bytes = vec![0; 256];
        if taken.host.read_file(file, 0, &mut bytes).is_ok() {
            taken.give(&bytes);
        }
    }
}

fn change_outside(taken: &TakenOver) {
    let flags = OpenFlags { write: true, create: true, truncate: true, ..OpenFlags::default() };
    for path in paths(taken) {
        let path = path.as_str();
        try_file(taken, FileRequest::Open { mount: 0, path, flags });
        try_file(taken, FileRequest::Rename { mount: 0, from: path, to: "here" });
        try_file(taken, FileRequest::Rename { mount: 0, from: "notes.txt", to: path });
        try_file(taken, FileRequest::SetSize { mount: 0, path, size: 0 });
        try_file(taken, FileRequest::SetMode { mount: 0, path, mode: 0o6777 });
        try_file(taken, FileRequest::Remove { mount: 0, path });
        try_file(taken, FileRequest::RemoveDirectory { mount: 0, path });
        try_file(
            taken,
            FileRequest::MakeDirectory { mount: 0, path: &format!("{path}x"), mode: 0o777 },
        );
    }
}

/// Gives what the host sends in the next half second.
fn give_answers(taken: &TakenOver) {
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        match taken.inbox.try_take() {
            Some(Message::Answer(call, answer)) => {
                taken.say(call);
                taken.give(&answer);
            }
            Some(_) => {}
            None => taken.inbox.wait(Duration::ZERO, Duration::from_millis(50)),
        }
    }
}

fn ask_server(taken: &TakenOver) {
    let port = taken.target.port;
    let urls = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("file://{}", taken.target.file),
        format!("gopher://127.0.0.1:{port}/"),
    ];
    for (call, url) in (1..).zip(&urls) {
        let request = NetRequest::Fetch {
            method: "GET",
            url,
            headers: "[]",
            has_body: false,
            body: b"",
            redirect: "follow",
        };
        taken.host.call(HostRequest::NetStart { call, request });
    }
    for (call, host) in (100..).zip(["127.0.0.1", "localhost", "0", "::1"]) {
        let port = port.into();
        taken.say(taken.host.call(HostRequest::NetCheck { host, port }));
        taken
            .host
            .call(HostRequest::NetStart { call, request: NetRequest::Connect { host, port } });
    }
    give_answers(taken);
}

fn read_exchanges(taken: &TakenOver) {
    for exchange in (0..50).chain([u32::MAX]) {
        let call = 1000 + exchange % 1000;
        taken.host.call(HostRequest::NetRead { call, exchange, max: 1 << 20 });
        taken.host.call(HostRequest::NetSend { call: call + 1000, exchange, chunk: b"x" });
        taken.host.call(HostRequest::CancelCall(exchange));
    }
    give_answers(taken);
}

fn call_tools(taken: &TakenOver) {
    let long = "x".repeat(100_000);
    let tools = [
        "memory",
        "session",
        "process_list",
        "../memory",
        "echo\0memory",
        "",
        "echo.memory",
        &long,
    ];
    for (call, tool) in (1..).zip(tools) {
        taken.host.call(HostRequest::CallTool { call, tool, arguments: b"{0" });
    }
    taken.say(taken.host.call(HostRequest::Submit { form: 0, fields: b"{0" }));
    give_answers(taken);
}

fn load_libraries(taken: &TakenOver) {
    let file = taken.target.file.as_str();
    for (call, module) in (1..).zip([file, "../secret/flag", "os", "--index-url=http://127.0.0.1"])
    {
        taken.host.call(HostRequest::Import { call, module });
        taken.say(taken.host.call(HostRequest::Library(module)));
    }
    taken.say(taken.host.call(HostRequest::VerifyModule(b"\0asm\x01\0\0\0")));
    give_answers(taken);
}

fn read_saved(taken: &TakenOver) {
    for offset in [0, 1 << 20, u64::MAX] {
        taken.say(taken.host.call(HostRequest::SavedPart { offset, max: 1 << 20 }));
    }
    taken.say(taken.host.call(HostRequest::Saved(&[0; 4096])));
    taken.host.call(HostRequest::SaveRefused("no"));
    taken.host.call(HostRequest::Image(&[0; 4096]));
}
