//! The package store of one sandbox, created on first use.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use isolet_pyodide_assets::Download;

use super::policy::PackagePolicy;
use super::requirement::Requirement;
use super::store::{Fetch, PackageStore, StoreOptions};
use super::wheel::MAX_WHEEL_BYTES;
use crate::data::error::Error;
use crate::support::cache_dir::cache_dir;

/// The placeholder for a file name in the URL of a source.
const FILE: &str = "{file}";

/// The package store of one sandbox, created on first use.
pub(crate) struct LazyStore {
    policy: PackagePolicy,
    lock_json: Arc<[u8]>,
    store: OnceLock<PackageStore>,
}

impl LazyStore {
    pub(crate) fn new(policy: PackagePolicy, lock_json: Arc<[u8]>) -> Self {
        Self { policy, lock_json, store: OnceLock::new() }
    }

    /// Returns the packages that may be imported.
    pub(crate) fn allowed(&self) -> &[Requirement] {
        &self.policy.allowed
    }

    /// Returns the store, and creates it on the first call.
    pub(crate) fn store(&self) -> Result<&PackageStore, Error> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let cache = match &self.policy.cache {
            Some(directory) => directory.clone(),
            None => cache_dir("packages")?,
        };
        let mut options = StoreOptions {
            wheels: self.policy.wheels.clone(),
            offline: self.policy.offline,
            ..StoreOptions::default()
        };
        match self.policy.pyodide_packages.clone().or_else(pyodides_own) {
            Some(source) if source.contains(FILE) => options.fetch = Some(fetch_from(source)),
            directory => options.pyodide_packages = directory.map(PathBuf::from),
        }
        let store = PackageStore::new(cache, &self.lock_json, options)?;
        Ok(self.store.get_or_init(|| store))
    }
}

/// Returns the URL at which Pyodide publishes its packages, the same as for Pyodide itself.
fn pyodides_own() -> Option<String> {
    isolet_pyodide_assets::lock().ok()?.sources().last().cloned()
}

fn fetch_from(source: String) -> Fetch {
    Arc::new(move |file| {
        let url = source.replace(FILE, file);
        download(&url, MAX_WHEEL_BYTES)
    })
}

/// Downloads a file of at most `limit` bytes. The store compares it with its digest.
fn download(url: &str, limit: u64) -> Result<Vec<u8>, String> {
    let download = Download::get(url, 0)?;
    if download.status() != 200 {
        return Err(format!("the server answered {}", download.status_text()));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to detect it.
    let read = download.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("the file is too long: limit {limit} bytes, needed more"));
    }
    Ok(bytes)
}

impl fmt::Debug for LazyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyStore").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Downloads from a server that answers one request with these bytes.
    fn download_of(response: &'static str, limit: u64) -> Result<Vec<u8>, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a.whl", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(response.as_bytes()).unwrap();
        });
        let downloaded = download(&url, limit);
        server.join().unwrap();
        downloaded
    }

    #[test]
    fn a_file_is_downloaded_up_to_its_limit_and_only_if_the_server_has_it() {
        const FOUR: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfour";
        const NONE: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
        const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfour";
        assert_eq!(download_of(FOUR, 4).unwrap(), b"four");
        let error = download_of(FOUR, 3).unwrap_err();
        assert_eq!(error, "the file is too long: limit 3 bytes, needed more");
        assert_eq!(download_of(NONE, 4).unwrap_err(), "the server answered 404 Not Found");
        assert!(download_of(CUT, 9).is_err());
        assert_eq!(download("http://127.0.0.1:9/a.whl", 4).unwrap_err(), "connection refused");
    }
}
