//! Connection files: where a front end wants the sockets of its kernel, and the key of messages.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

/// The most bytes of a connection file.
const MAX_BYTES: u64 = 64 << 10;

/// What a connection file says.
#[derive(Clone, Deserialize)]
pub struct Connection {
    #[serde(default)]
    transport: Transport,
    ip: String,
    key: String,
    #[serde(default)]
    signature_scheme: Scheme,
    shell_port: u16,
    control_port: u16,
    stdin_port: u16,
    iopub_port: u16,
    hb_port: u16,
    /// Set if clients are to encrypt what they send.
    #[serde(default)]
    curve_publickey: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Transport {
    #[default]
    Tcp,
    Ipc,
}

#[derive(Clone, Copy, Default, Deserialize)]
enum Scheme {
    #[default]
    #[serde(rename = "hmac-sha256")]
    HmacSha256,
}

/// The sockets of a kernel, which clients can connect to.
pub(super) struct Listeners {
    pub(super) shell: Listener,
    pub(super) control: Listener,
    pub(super) stdin: Listener,
    pub(super) published: Listener,
    pub(super) heartbeat: Listener,
}

pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection of a client.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Connection {
    /// Reads a connection file.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let mut text = String::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
            .with_context(|| format!("the connection file `{shown}` cannot be read"))?;
        ensure!(
            text.len() as u64 <= MAX_BYTES,
            "the connection file `{shown}` has more than {MAX_BYTES} bytes"
        );
        let connection: Self = serde_json::from_str(&text)
            .with_context(|| format!("the connection file `{shown}` is not understood"))?;
        ensure!(
            !connection.key.is_empty(),
            "the connection file `{shown}` has no key: anybody who can connect could run cells; \
             let Jupyter make a key (`c.Session.key`)"
        );
        ensure!(
            connection.curve_publickey.is_none(),
            "the connection file `{shown}` asks for encryption (CurveZMQ), which isolet's kernel \
             does not have; `c.KernelManager.transport = \"ipc\"` keeps others from the sockets"
        );
        Ok(connection)
    }

    pub(super) fn key(&self) -> &str {
        // There is no other scheme.
        let Scheme::HmacSha256 = self.signature_scheme;
        &self.key
    }

    pub(super) async fn listen(&self) -> Result<Listeners> {
        Ok(Listeners {
            shell: self.bind(self.shell_port).await?,
            control: self.bind(self.control_port).await?,
            stdin: self.bind(self.stdin_port).await?,
            published: self.bind(self.iopub_port).await?,
            heartbeat: self.bind(self.hb_port).await?,
        })
    }

    async fn bind(&self, port: u16) -> Result<Listener> {
        match self.transport {
            Transport::Tcp => {
                let ip = match &*self.ip {
                    "*" => "0.0.0.0",
                    ip => ip,
                };
                let bound = TcpListener::bind((ip, port)).await;
                bound.map(Listener::Tcp).with_context(|| format!("cannot listen at {ip}:{port}"))
            }
            Transport::Ipc => {
                let path = PathBuf::from(format!("{}-{port}", self.ip));
                let bound = UnixListener::bind(&path).map(Listener::Unix);
                bound.with_context(|| format!("cannot listen at `{}`", path.display()))
            }
        }
    }

    /// Removes the sockets that are files.
    pub(super) fn remove_files(&self) {
        if let Transport::Ipc = self.transport {
            let ports = [
                self.shell_port,
                self.control_port,
                self.stdin_port,
                self.iopub_port,
                self.hb_port,
            ];
            for port in ports {
                // One that is gone is not missed.
                let _ = std::fs::remove_file(format!("{}-{port}", self.ip));
            }
        }
    }
}

impl Listener {
    pub(super) async fn accept(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Messages are short, and each is waited for.
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Connection> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Connection::read(file.path())
    }

    const PORTS: &str =
        r#""shell_port":1,"control_port":2,"stdin_port":3,"iopub_port":4,"hb_port":5"#;

    #[test]
    fn a_connection_file_is_read_and_one_without_a_key_is_refused() {
        let read = |rest: &str| read(&format!(r#"{{"ip":"127.0.0.1",{PORTS},{rest}}}"#));
        let scheme = r#""signature_scheme":"hmac-sha256","transport":"tcp","kernel_name":"x""#;
        assert_eq!(read(&format!(r#""key":"k",{scheme}"#)).unwrap().key(), "k");
        assert!(read(r#""key":"""#).err().unwrap().to_string().contains("has no key"));
        let curve = read(r#""key":"k","curve_publickey":"p""#).err().unwrap().to_string();
        assert!(curve.contains("asks for encryption (CurveZMQ)"), "{curve}");
        for rest in [r#""key":1"#, r#""key":"k","signature_scheme":"hmac-md5""#, r#""a":"k""#] {
            let error = read(rest).err().unwrap().to_string();
            assert!(error.ends_with("is not understood"), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read_to_its_end() {
        let error = read(&" ".repeat(70_000)).err().unwrap().to_string();
        assert!(error.ends_with("has more than 65536 bytes"), "{error}");
    }
}
