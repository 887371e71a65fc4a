//! HTTP requests of the host: for Pyodide's files, and for packages. The caller checks what arrives
//! against a digest.
//!
//! A thread of its own serves each request, so that a caller may block in any context, also in an
//! async runtime.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use reqwest::{Client, header};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use crate::error::plain;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the server may be silent, even in the middle of a file.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
const TOTAL_TIMEOUT: Duration = Duration::from_mins(15);

/// Chunks of the body that wait to be read.
const WAITING_CHUNKS: usize = 16;

/// The certificate authorities of Mozilla's programme, compiled in.
static TLS: LazyLock<Option<ClientConfig>> = LazyLock::new(|| {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().ok()?;
    Some(builder.with_root_certificates(roots).with_no_client_auth())
});

/// A response, whose body is read from it.
#[derive(Debug)]
pub struct Download {
    head: Head,
    chunks: Receiver<Chunk>,
    /// The rest of the last chunk.
    left: Chunk,
}

type Chunk = io::Result<Vec<u8>>;

#[derive(Debug)]
struct Head {
    status: u16,
    status_text: String,
    content_length: Option<u64>,
    content_range: Option<String>,
}

impl Download {
    /// Sends a GET request and waits for the response. With `start` above 0 it asks for the bytes
    /// from there on only.
    ///
    /// It follows up to ten redirects, uses the proxies that the environment names
    /// (`HTTPS_PROXY` and the like), and decodes nothing.
    ///
    /// # Errors
    ///
    /// Why there is no response, as part of a sentence.
    pub fn get(url: &str, start: u64) -> Result<Self, String> {
        let (give_head, head) = sync_channel(1);
        let (give_chunk, chunks) = sync_channel(WAITING_CHUNKS);
        let url = url.to_owned();
        let serve = move || serve(&url, start, &give_head, &give_chunk);
        let thread = thread::Builder::new().name("isolet-download".to_owned()).spawn(serve);
        thread.map_err(|error| plain(&error))?;
        let head = head.recv().unwrap_or_else(|_| Err("the download ended early".to_owned()))?;
        Ok(Self { head, chunks, left: Ok(Vec::new()) })
    }

    /// Returns the status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Returns the status code with its standard reason, such as `404 Not Found`.
    #[must_use]
    pub fn status_text(&self) -> &str {
        &self.head.status_text
    }

    /// Returns the announced length of the body, in bytes.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        self.head.content_length
    }

    /// Returns the header `Content-Range`.
    #[must_use]
    pub fn content_range(&self) -> Option<&str> {
        self.head.content_range.as_deref()
    }
}

impl Read for Download {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if matches!(&self.left, Ok(left) if left.is_empty()) {
            // No further chunk is the end of the body.
            self.left = self.chunks.recv().unwrap_or_else(|_| Ok(Vec::new()));
        }
        match &mut self.left {
            Ok(left) => {
                let count = left.len().min(into.len());
                into[..count].copy_from_slice(&left[..count]);
                left.drain(..count);
                Ok(count)
            }
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

/// Serves one request on its own thread. It ends when nobody reads the body any more.
fn serve(
    url: &str,
    start: u64,
    give_head: &SyncSender<Result<Head, String>>,
    give_chunk: &SyncSender<Chunk>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            // The caller waits for it.
            let _ = give_head.send(Err(plain(&error)));
            return;
        }
    };
    runtime.block_on(async {
        let mut response = match request(url, start).await {
            Ok(response) => response,
            Err(reason) => {
                let _ = give_head.send(Err(reason));
                return;
            }
        };
        let content_range = response.headers().get(header::CONTENT_RANGE);
        let head = Head {
            status: response.status().as_u16(),
            status_text: response.status().to_string(),
            content_length: response.content_length(),
            content_range: content_range.and_then(|range| range.to_str().ok()).map(str::to_owned),
        };
        let _ = give_head.send(Ok(head));
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) if chunk.is_empty() => continue,
                Ok(Some(chunk)) => Ok(chunk.to_vec()),
                Ok(None) => return,
                Err(error) => Err(io::Error::other(words(&error))),
            };
            // A server that is too quick waits for the disk, and this thread has nothing else to
            // do.
            let is_last = chunk.is_err();
            if give_chunk.send(chunk).is_err() || is_last {
                return;
            }
        }
    });
}

async fn request(url: &str, start: u64) -> Result<reqwest::Response, String> {
    let tls = TLS.clone().ok_or_else(|| "this program has no TLS".to_owned())?;
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("isolet/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(SILENCE_TIMEOUT)
        .timeout(TOTAL_TIMEOUT)
        .build();
    let client = client.map_err(|error| words(&error))?;
    let mut request = client.get(url).header(header::ACCEPT_ENCODING, "identity");
    if start > 0 {
        request = request.header(header::RANGE, format!("bytes={start}-"));
    }
    request.send().await.map_err(|error| words(&error))
}

/// Returns why a request failed, as part of a sentence.
fn words(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let text = match cause.downcast_ref::<io::Error>() {
        Some(error) => plain(error),
        None => cause.to_string(),
    };
    // The standard library has no kind for this error and appends the C library's text.
    if text.starts_with("failed to lookup address") {
        return "the host name cannot be resolved".to_owned();
    }
    text
}
