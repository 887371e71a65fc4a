//! The flags that no program may read: plants fresh ones, and says which of them a text has.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The environment variable of the embedding process that has a flag.
pub(crate) const VARIABLE: &str = "ISOLET_ESCAPE_FLAG";

/// What each flag begins with. Programs know it, so that they can search for flags.
const PREFIX: &str = "FLAG{";

/// Where a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In a file beside a directory that is mounted.
    File,
    /// In the environment of the embedding process.
    Environment,
    /// In a variable and a file of another session of the same sandbox.
    Session,
    /// On a server on the loopback.
    Server,
    /// In the memory of the embedding process.
    Memory,
    /// In the command line of another process of the host.
    Processes,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::File, Self::Environment, Self::Session, Self::Server, Self::Memory, Self::Processes];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Environment => "environment",
            Self::Session => "session",
            Self::Server => "server",
            Self::Memory => "memory",
            Self::Processes => "processes",
        }
    }
}

/// What a program has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// The flag of this kind is in what it returned.
    Flag(Kind),
    /// The server had connections, whatever it answered.
    Server(usize),
    /// Files of the host outside of the mount are not as they were.
    Files,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(kind) => write!(f, "the flag in the {}", kind.name()),
            Self::Server(connections) => write!(f, "the server ({connections} connections)"),
            Self::Files => f.write_str("files of the host"),
        }
    }
}

/// Flags in all places. Dropping them takes them away.
#[derive(Debug)]
pub(crate) struct Flags {
    secrets: [String; 6],
    directory: TempDir,
    process: Child,
    port: u16,
    abstract_name: String,
    connections: Arc<AtomicUsize>,
}

impl Flags {
    /// Plants a new flag in each place that the embedding process does not have to make itself.
    pub(crate) fn plant() -> io::Result<Self> {
        let mut secrets = <[String; 6]>::default();
        for secret in &mut secrets {
            *secret = random()?;
        }
        let directory = tempfile::Builder::new().prefix("isolet-escape-").tempdir()?;
        for name in ["mounted", "secret"] {
            fs::create_dir(directory.path().join(name))?;
        }
        fs::write(directory.path().join("mounted/notes.txt"), "nothing of interest\n")?;
        let flag = |kind: Kind| format!("{PREFIX}{}-{}}}", kind.name(), secrets[kind as usize]);
        fs::write(directory.path().join("secret/flag"), flag(Kind::File))?;
        // It waits for its input, which ends with this process, and then finds no such file.
        let process = Command::new("cat")
            .args(["-", &flag(Kind::Processes)])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let connections = Arc::<AtomicUsize>::default();
        let abstract_name = format!("isolet-escape-{}", random()?);
        let port = serve(&flag(Kind::Server), &abstract_name, &connections)?;
        Ok(Self { secrets, directory, process, port, abstract_name, connections })
    }

    /// Returns the text of a flag.
    pub(crate) fn flag(&self, kind: Kind) -> String {
        format!("{PREFIX}{}-{}}}", kind.name(), self.secrets[kind as usize])
    }

    /// Returns the directory that is mounted.
    pub(crate) fn mounted(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    /// Returns what programs are told: where each flag is.
    pub(crate) fn target(&self) -> Value {
        json!({
            "prefix": PREFIX,
            "directory": self.directory.path(),
            "file": self.directory.path().join("secret/flag"),
            "variable": VARIABLE,
            "port": self.port,
            "socket": self.abstract_name,
            "process": self.process.id(),
        })
    }

    /// Returns what a program has reached that returned this.
    pub(crate) fn reached(&self, returned: &[u8]) -> Vec<Reached> {
        let text = String::from_utf8_lossy(returned);
        let dense = text.replace([' ', '\t', '\r', '\n', '\0'], "");
        let lower = dense.to_ascii_lowercase();
        let has = |kind: &Kind| {
            let secret = &self.secrets[*kind as usize];
            forms(secret).iter().any(|form| lower.contains(form.as_str()))
                || in_base64(secret).iter().any(|form| dense.contains(form.as_str()))
        };
        let mut reached: Vec<_> = Kind::ALL.into_iter().filter(has).map(Reached::Flag).collect();
        let connections = self.connections.load(Ordering::Acquire);
        if connections > 0 {
            reached.push(Reached::Server(connections));
        }
        if !self.files_are_as_they_were() {
            reached.push(Reached::Files);
        }
        reached
    }

    fn files_are_as_they_were(&self) -> bool {
        let names = |directory: PathBuf| -> io::Result<Vec<_>> {
            let entries = fs::read_dir(directory)?;
            let mut names =
                entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
            names.sort();
            Ok(names)
        };
        let here = self.directory.path();
        let kept = fs::read_to_string(here.join("secret/flag"));
        kept.is_ok_and(|kept| kept == self.flag(Kind::File))
            && names(here.to_owned()).is_ok_and(|names| names == ["mounted", "secret"])
            && names(here.join("secret")).is_ok_and(|names| names == ["flag"])
    }
}

impl Drop for Flags {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns 32 digits that nobody knows.
fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| {
        [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
    };
    bytes.iter().flat_map(digits).collect()
}

/// Returns how a program may print a secret, apart from base64.
fn forms(secret: &str) -> Vec<String> {
    let reversed: String = secret.chars().rev().collect();
    let list = |between: &str, form: fn(u8) -> String| {
        secret.bytes().map(form).collect::<Vec<_>>().join(between)
    };
    vec![
        hex(secret.as_bytes()),
        hex(reversed.as_bytes()),
        list(",", |byte| byte.to_string()),
        list("", |byte| format!("\\x{byte:02x}")),
        secret.to_owned(),
        reversed,
    ]
}

/// Returns how a secret looks within base64, whatever is before and after it.
fn in_base64(secret: &str) -> Vec<String> {
    let inner = |before: usize| {
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before], secret.as_bytes()].concat());
        // The characters that also depend on the bytes before and after.
        encoded[before.div_ceil(3) * 4..encoded.len() - 2].to_owned()
    };
    (0..3).map(inner).collect()
}

/// Serves a flag by TCP, UDP and an abstract socket, until the process ends. Returns the port.
fn serve(flag: &str, name: &str, connections: &Arc<AtomicUsize>) -> io::Result<u16> {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{flag}", flag.len());
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let port = tcp.local_addr()?.port();
    let udp = UdpSocket::bind(("127.0.0.1", port))?;
    let unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    let (count, text) = (Arc::clone(connections), answer.clone());
    thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            count.fetch_add(1, Ordering::AcqRel);
            let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(text.as_bytes());
        }
    });
    let (count, text) = (Arc::clone(connections), answer.clone());
    thread::spawn(move || {
        for mut stream in unix.incoming().flatten() {
            count.fetch_add(1, Ordering::AcqRel);
            let _ = stream.write_all(text.as_bytes());
        }
    });
    let count = Arc::clone(connections);
    thread::spawn(move || {
        while let Ok((_, from)) = udp.recv_from(&mut [0; 4096]) {
            count.fetch_add(1, Ordering::AcqRel);
            let _ = udp.send_to(answer.as_bytes(), from);
        }
    });
    Ok(port)
}
