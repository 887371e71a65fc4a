//! The store of paused sessions and snapshots: files in a directory of the node. Each start of the
//! node has a subdirectory, because ids of earlier starts are no longer valid.

use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Refusal;
use super::config::StoreSettings;
use super::ids::{self, Ids};
use super::private_directory;
use super::tenants::Tenant;
use crate::core::Failure;
use isolet::internals::lock;

pub(crate) struct Store {
    /// The directory of this start.
    directory: String,
    /// The maximum size of all files, in bytes.
    size: u64,
    /// How long a session is kept.
    pub(crate) ttl: Duration,
    used: Mutex<Usage>,
}

#[derive(Default)]
struct Usage {
    bytes: u64,
    by_tenant: HashMap<String, TenantUsage>,
}

/// The files of a tenant.
#[derive(Default)]
struct TenantUsage {
    count: usize,
    bytes: u64,
}

/// A saved session. Its file is removed when this is dropped.
pub(crate) struct Saved {
    store: Arc<Store>,
    tenant: String,
    /// The maximum number of bytes of its tenant.
    most: u64,
    path: String,
    bytes: u64,
}

impl Store {
    /// Opens the store, and removes the files of earlier starts of this node.
    ///
    /// # Errors
    ///
    /// Fails if the directory is unusable, or accessible to other users.
    pub(crate) fn open(settings: StoreSettings, ids: &Ids) -> Result<Self, String> {
        let StoreSettings { directory, size, ttl } = settings;
        let shown = directory.display();
        let failed = |error: std::io::Error| format!("cannot use the store `{shown}`: {error}");
        private_directory::make("the store", &directory)?;
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_str().is_some_and(|name| ids.is_prefix(name)) {
                fs::remove_dir_all(entry.path()).map_err(failed)?;
            }
        }
        let own = directory.join(ids.prefix());
        DirBuilder::new().mode(0o700).create(&own).map_err(failed)?;
        let directory = own.to_str().ok_or_else(|| format!("`{shown}` is not UTF-8"))?.to_owned();
        Ok(Self { directory, size, ttl, used: Mutex::default() })
    }

    /// Reserves a file for a session, which the caller saves at its path.
    pub(crate) fn begin(self: &Arc<Self>, tenant: &Tenant) -> Result<Saved, Refusal> {
        let name = ids::random(26).map_err(|error| Failure::config(error.to_string()))?;
        let mut used = lock(&self.used);
        if used.bytes >= self.size {
            let (limit, bytes) = (self.size, used.bytes);
            let text = format!("bytes in the node's store: limit {limit}, there are {bytes}");
            return Err(Refusal::Quota(text));
        }
        let own = used.by_tenant.entry(tenant.name.clone()).or_default();
        let (quota, most) = (tenant.quotas.saved, tenant.share(self.size));
        if own.count >= quota {
            let text = format!("paused sessions and snapshots of this key: limit {quota}");
            return Err(Refusal::Quota(text));
        }
        if own.bytes >= most {
            return Err(own_bytes(most, own.bytes));
        }
        own.count += 1;
        drop(used);
        Ok(Saved {
            store: Arc::clone(self),
            tenant: tenant.name.clone(),
            most,
            path: format!("{}/{name}.session", self.directory),
            bytes: 0,
        })
    }

    /// Removes all files when the node shuts down.
    pub(crate) fn clear(&self) {
        // The next start removes leftovers.
        let _ = fs::remove_dir_all(Path::new(&self.directory));
    }
}

impl Saved {
    pub(crate) fn path(&self) -> String {
        self.path.clone()
    }

    /// Counts the written file.
    pub(crate) fn finish(mut self) -> Result<Self, Refusal> {
        // Without following a link.
        let found = fs::symlink_metadata(&self.path);
        let bytes = found.map_err(|error| Failure::config(error.to_string()))?.len();
        self.bytes = bytes;
        let mut used = lock(&self.store.used);
        used.bytes += bytes;
        let (limit, all) = (self.store.size, used.bytes);
        let own = used.by_tenant.entry(self.tenant.clone()).or_default();
        own.bytes += bytes;
        let own = own.bytes;
        drop(used);
        if all > limit {
            let text = format!("bytes in the node's store: limit {limit}, it would have {all}");
            return Err(Refusal::Quota(text));
        }
        if own > self.most {
            return Err(own_bytes(self.most, own));
        }
        Ok(self)
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        // Missing if saving failed.
        let _ = fs::remove_file(&self.path);
        let mut used = lock(&self.store.used);
        used.bytes -= self.bytes;
        if let Some(own) = used.by_tenant.get_mut(&self.tenant) {
            own.bytes -= self.bytes;
            own.count -= 1;
            if own.count == 0 {
                used.by_tenant.remove(&self.tenant);
            }
        }
    }
}

fn own_bytes(limit: u64, bytes: u64) -> Refusal {
    Refusal::Quota(format!(
        "bytes of this key in the node's store: limit {limit}, half of it, there are {bytes}"
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::node::ceiling::Ceiling;
    use crate::node::tenants::Quotas;

    fn open(directory: &Path, node: &str, size: u64) -> Result<Arc<Store>, String> {
        let settings =
            StoreSettings { directory: directory.to_owned(), size, ttl: Duration::from_secs(1) };
        Store::open(settings, &Ids::new(node).unwrap()).map(Arc::new)
    }

    fn tenant(saved: usize) -> Tenant {
        let quotas = Quotas { saved, ..Quotas::default() };
        Tenant::new("a".to_owned(), Ceiling::default(), quotas)
    }

    #[test]
    fn what_is_saved_is_bounded_by_bytes_and_by_tenant_and_goes_with_its_owner() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory.path().join("store"), "n", 10).unwrap();
        let save = |bytes: usize| {
            let saved = store.begin(&tenant(2))?;
            fs::write(saved.path(), vec![0; bytes]).unwrap();
            saved.finish()
        };
        let first = save(6).ok().unwrap();
        assert!(matches!(save(5), Err(Refusal::Quota(text)) if text.contains("limit 10")));
        let second = save(4).ok().unwrap();
        assert!(matches!(store.begin(&tenant(9)), Err(Refusal::Quota(_))));
        drop(second);
        let second = save(1).ok().unwrap();
        assert!(matches!(store.begin(&tenant(2)), Err(Refusal::Quota(text)) if text.contains('2')));
        let path = first.path();
        assert!(Path::new(&path).exists());
        drop((first, second));
        assert!(!Path::new(&path).exists());
        let used = lock(&store.used);
        assert_eq!((used.bytes, used.by_tenant.len()), (0, 0));
    }

    #[test]
    fn a_start_removes_what_earlier_ones_of_its_node_have_left_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("store");
        let (earlier, other) = (open(&place, "n", 1).unwrap(), open(&place, "n-b", 1).unwrap());
        let store = open(&place, "n", 1).unwrap();
        assert!(!Path::new(&earlier.directory).exists());
        assert!(Path::new(&other.directory).exists() && Path::new(&store.directory).exists());
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(open(&place, "n", 1).err().unwrap().contains("mode 755"));
    }
}
