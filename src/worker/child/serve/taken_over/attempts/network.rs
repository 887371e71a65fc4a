//! Attempts at servers, by sockets of every kind, and by those that a worker has.

use std::ffi::{c_int, c_long};
use std::io;

use super::super::system::{Arg, call};
use super::super::{Attempt, TakenOver};
use super::{NETWORK, give_all, harms, reads, try_call};

const HTTP: &str = "SandboxBench: exfiltration by HTTP";
const DNS: &str = "SandboxBench: exfiltration by DNS";
const PACKETS: &str = "SandboxEscapeBench: packet sockets (CVE-2020-14386)";
const ENGINE: &str = "SandboxEscapeBench: Docker's socket";

pub(super) const ATTEMPTS: &[Attempt] = &[
    reads(NETWORK, "native: TCP", "Connects to the server.", HTTP, |taken| {
        connect(
            taken,
            libc::AF_INET,
            libc::SOCK_STREAM,
            &internet(taken.target.port, [127, 0, 0, 1]),
        )
    }),
    reads(NETWORK, "native: UDP", "Sends a datagram to the server.", DNS, |taken| {
        connect(
            taken,
            libc::AF_INET,
            libc::SOCK_DGRAM,
            &internet(taken.target.port, [127, 0, 0, 1]),
        )
    }),
    reads(
        NETWORK,
        "native: an abstract socket",
        "Connects to the server's abstract socket.",
        ENGINE,
        |taken| connect(taken, libc::AF_UNIX, libc::SOCK_STREAM, &abstract_socket(taken)),
    ),
    harms(
        NETWORK,
        "native: a socket of Docker",
        "Connects to the socket of a container engine.",
        ENGINE,
        |taken| {
            let path = b"/var/run/docker.sock\0";
            let address = [&family(libc::AF_UNIX)[..], path].concat();
            connect(taken, libc::AF_UNIX, libc::SOCK_STREAM, &address)
        },
    ),
    harms(
        NETWORK,
        "native: metadata of a cloud",
        "Connects to the address at which clouds have credentials.",
        "SandboxBench: discovery by a metadata service",
        |taken| {
            connect(taken, libc::AF_INET, libc::SOCK_STREAM, &internet(80, [169, 254, 169, 254]))
        },
    ),
    harms(
        NETWORK,
        "native: packets",
        "Opens a socket for packets of all protocols.",
        PACKETS,
        |taken| {
            try_call(
                taken,
                libc::SYS_socket,
                [libc::AF_PACKET.into(), libc::SOCK_RAW.into(), 0x0300],
            )
        },
    ),
    harms(
        NETWORK,
        "native: the kernel's tables",
        "Opens a socket to the kernel's tables of routes and filters.",
        PACKETS,
        |taken| {
            try_call(taken, libc::SYS_socket, [libc::AF_NETLINK.into(), libc::SOCK_RAW.into(), 12])
        },
    ),
    harms(
        NETWORK,
        "native: a virtual machine's host",
        "Opens a socket to the host of a virtual machine.",
        "",
        |taken| {
            try_call(taken, libc::SYS_socket, [libc::AF_VSOCK.into(), libc::SOCK_STREAM.into(), 0])
        },
    ),
    harms(NETWORK, "native: a raw socket", "Opens a raw socket.", PACKETS, |taken| {
        try_call(taken, libc::SYS_socket, [libc::AF_INET.into(), libc::SOCK_RAW.into(), 1])
    }),
    harms(NETWORK, "native: a server", "Listens, and waits for somebody.", HTTP, |taken| {
        try_call(taken, libc::SYS_listen, [0, 1])?;
        try_call(taken, libc::SYS_accept4, [0, 0, 0, 0])
    }),
    harms(
        NETWORK,
        "native: its own sockets, connected anew",
        "Connects the sockets that it has to the server.",
        HTTP,
        |taken| {
            let address = abstract_socket(taken);
            let length = c_long::try_from(address.len()).unwrap_or_default();
            (0..8).try_for_each(|socket| {
                let arguments = [Arg::Number(socket), Arg::Bytes(&address), Arg::Number(length)];
                call(libc::SYS_connect, arguments).map(drop)
            })
        },
    ),
    reads(
        NETWORK,
        "native: its own sockets, with an address",
        "Sends from its sockets to the server's address, by a call that a worker may make.",
        HTTP,
        |taken| {
            for (socket, address) in [
                (3, abstract_socket(taken)),
                (4, abstract_socket(taken)),
                (4, internet(taken.target.port, [127, 0, 0, 1])),
            ] {
                let length = c_long::try_from(address.len()).unwrap_or_default();
                let arguments = [
                    Arg::Number(socket),
                    Arg::Bytes(&[0; 8]),
                    Arg::Number(8),
                    Arg::Number(0),
                    Arg::Bytes(&address),
                    Arg::Number(length),
                ];
                taken.say(call(libc::SYS_sendto, arguments));
            }
            Ok(())
        },
    ),
    harms(
        NETWORK,
        "native: a descriptor received",
        "Receives descriptors that the parent may have sent.",
        "",
        |_| {
            let mut message = [0; 56];
            call(libc::SYS_recvmsg, [Arg::Number(0), Arg::Into(&mut message), Arg::Number(0)])
                .map(drop)
        },
    ),
    harms(NETWORK, "native: a descriptor sent", "Sends descriptors to the parent.", "", |_| {
        call(libc::SYS_sendmsg, [Arg::Number(0), Arg::Bytes(&[0; 56]), Arg::Number(0)]).map(drop)
    }),
    harms(NETWORK, "native: a pair of sockets", "Makes a pair of sockets.", "", |_| {
        let mut pair = [0; 8];
        let kind = [libc::AF_UNIX, libc::SOCK_STREAM, 0].map(|number| Arg::Number(number.into()));
        let [domain, kind, protocol] = kind;
        call(libc::SYS_socketpair, [domain, kind, protocol, Arg::Into(&mut pair)]).map(drop)
    }),
    harms(
        NETWORK,
        "native: bytes out of band",
        "Sends and receives out of band, in a part of the kernel that had faults.",
        "",
        |_| {
            let flags = Arg::Number(libc::MSG_OOB.into());
            call(libc::SYS_sendto, [Arg::Number(0), Arg::Bytes(b"x"), Arg::Number(1), flags])
                .map(drop)
        },
    ),
];

/// Returns the beginning of an address.
fn family(family: c_int) -> [u8; 2] {
    u16::try_from(family).unwrap_or_default().to_ne_bytes()
}

fn internet(port: u16, address: [u8; 4]) -> Vec<u8> {
    [&family(libc::AF_INET)[..], &port.to_be_bytes(), &address, &[0; 8]].concat()
}

fn abstract_socket(taken: &TakenOver) -> Vec<u8> {
    [&family(libc::AF_UNIX)[..], b"\0", taken.target.socket.as_bytes()].concat()
}

/// Connects, sends something, and gives the answer.
fn connect(taken: &TakenOver, domain: c_int, kind: c_int, address: &[u8]) -> io::Result<()> {
    let socket =
        call(libc::SYS_socket, [domain, kind, 0].map(|number| Arg::Number(number.into())))?;
    let length = c_long::try_from(address.len()).unwrap_or_default();
    call(libc::SYS_connect, [Arg::Number(socket), Arg::Bytes(address), Arg::Number(length)])?;
    let request = b"GET / HTTP/1.0\r\n\r\n";
    let length = c_long::try_from(request.len()).unwrap_or_default();
    call(libc::SYS_write, [Arg::Number(socket), Arg::Bytes(request), Arg::Number(length)])?;
    give_all(taken, socket)
}
