//! Downloads files of Pyodide's distribution, and tells of it.

use std::fmt;
use std::sync::Arc;

use isolet_pyodide_assets::{Downloader, Progress};

use super::store::Fetch;

/// How far a download of packages is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageDownload {
    /// The file that is being downloaded, and of several files how many there are.
    pub what: String,
    /// How many bytes of all files are there.
    pub received_bytes: u64,
    /// How many bytes all files have, as far as it is known; 0 if it is not known yet.
    pub total_bytes: u64,
}

/// Receives the progress of downloads.
#[derive(Clone)]
pub(crate) struct DownloadSink(Arc<dyn Fn(&PackageDownload) + Send + Sync>);

impl DownloadSink {
    pub(crate) fn new(sink: impl Fn(&PackageDownload) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }
}

impl fmt::Debug for DownloadSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DownloadSink").finish_non_exhaustive()
    }
}

/// Makes a store fetch by this downloader.
pub(crate) fn fetch(downloader: Downloader, sink: Option<DownloadSink>) -> Fetch {
    Arc::new(move |files, into| {
        downloader.download(files, into, &mut Told { sink: sink.as_ref(), state: None })
    })
}

struct Told<'a> {
    sink: Option<&'a DownloadSink>,
    state: Option<PackageDownload>,
}

impl Told<'_> {
    fn tell(&self) {
        if let (Some(DownloadSink(sink)), Some(state)) = (self.sink, &self.state) {
            sink(state);
        }
    }
}

impl Progress for Told<'_> {
    fn start(&mut self, what: &str, total: u64) {
        let what = what.to_owned();
        self.state = Some(PackageDownload { what, received_bytes: 0, total_bytes: total });
    }

    fn advance(&mut self, bytes: u64) {
        if let Some(state) = &mut self.state {
            state.received_bytes += bytes;
        }
        self.tell();
    }

    fn finish(&mut self) {}
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::thread;

    use isolet_pyodide_assets::{Digest, Wanted};

    use super::super::tests::directory;
    use super::*;

    #[test]
    fn a_download_tells_how_far_it_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = format!("http://{}/{{file}}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfour").unwrap();
        });
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&told);
        let sink = DownloadSink::new(move |download| log.lock().unwrap().push(download.clone()));
        let into = directory();
        let files = [Wanted::new("a.whl", Digest::of(b"four"), 4)];
        fetch(Downloader::new([source]), Some(sink))(&files, into.path()).unwrap();
        server.join().unwrap();
        assert_eq!(std::fs::read(into.path().join("a.whl")).unwrap(), b"four");
        let what = "a.whl".to_owned();
        let end = PackageDownload { what, received_bytes: 4, total_bytes: 4 };
        assert_eq!(told.lock().unwrap().last(), Some(&end));
    }
}
