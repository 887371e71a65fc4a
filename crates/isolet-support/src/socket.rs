//! The address that the command listens at: TCP, or a Unix socket.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

/// The hosts whose names reach this machine only.
pub const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("`unix:` needs the path of the socket".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                format!("`{text}` is neither ADDRESS:PORT, such as 127.0.0.1:8000, nor unix:PATH")
            }),
        }
    }
}

/// Makes a Unix socket that only its owner may use. One that a server has left behind is replaced.
pub fn bind_unix(path: &Path) -> Result<UnixListener> {
    let shown = path.display();
    if path.exists() {
        ensure!(UnixStream::connect(path).is_err(), "a server listens at `{shown}` already");
        let is_socket = fs::metadata(path).is_ok_and(|it| it.file_type().is_socket());
        ensure!(is_socket, "`{shown}` is there already, and is no socket");
        fs::remove_file(path).with_context(|| format!("cannot replace `{shown}`"))?;
    }
    // No other user may connect between the two steps.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let socket = UnixListener::bind(path);
    rustix::process::umask(before);
    socket.with_context(|| format!("cannot listen at `{shown}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_of_tcp_or_of_a_unix_socket() {
        let tcp = "127.0.0.1:8000".parse::<Address>().unwrap();
        assert_eq!(tcp, Address::Tcp(([127, 0, 0, 1], 8000).into()));
        assert_eq!("unix:/a/b".parse(), Ok(Address::Unix("/a/b".into())));
        for text in ["", "8000", "localhost", "unix:", "example.com:80"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
