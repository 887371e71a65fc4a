//! The store of sleeping sessions (`--session-store`): files in a directory, from which a later
//! call wakes them. Servers may share it, and the next server continues the sessions of the last.
//!
//! A file is named by a hash of the session's handle and its owner, so that the directory reveals
//! no handle. A server that wakes a session renames the file first, so that no other does.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};
use isolet::blocking::Session;

use super::parked::{KEY_BYTES, new_key};
use super::settings::StoreSettings;
use isolet_service::core::in_options;
use isolet_support::size::shown_bytes;

/// The end of the names of sessions that sleep.
const EXTENSION: &str = "session";

/// The end of the names of journals, of runs that wait for a decision.
const JOURNAL: &str = "journal";

/// The file with the key of references to runs.
const KEY: &str = "references.key";

/// The age from which a half-written file, or one that was taken to be woken, counts as left behind
/// by a server that ended.
const LEFT_BEHIND: Duration = Duration::from_hours(1);

#[derive(Clone)]
pub(super) struct Store {
    /// The path, for saving and restoring.
    directory: Arc<Path>,
    /// For everything else.
    open: Arc<Dir>,
    ttl: Duration,
    max_bytes: u64,
    turns: Arc<Mutex<HashMap<String, Weak<Turn>>>>,
}

/// Held by the call that wakes a session.
type Turn = tokio::sync::Mutex<()>;

impl Store {
    /// Opens the directory. Makes it if it is missing.
    pub(super) fn open(settings: &StoreSettings) -> Result<Self> {
        let directory = &settings.directory;
        let shown = directory.display();
        let created = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        created.with_context(|| format!("cannot make `{shown}`"))?;
        let unread = || format!("cannot read `{shown}`");
        let open = Dir::open_ambient_dir(directory, ambient_authority()).with_context(unread)?;
        let found = open.dir_metadata().with_context(unread)?;
        let (mode, owner) = (found.mode() & 0o077, found.uid());
        ensure!(mode == 0, "others may use `{shown}`, which is to have sessions; `chmod 700` it");
        let own = rustix::process::geteuid().as_raw();
        ensure!(
            owner == own,
            "`{shown}` is to have sessions, and belongs to the user {owner} instead of {own}; name \
             a directory of your own"
        );
        let store = Self {
            directory: Arc::from(directory.as_path()),
            open: Arc::new(open),
            ttl: settings.ttl,
            max_bytes: settings.max_bytes,
            turns: Arc::default(),
        };
        store.trim().with_context(unread)?;
        Ok(store)
    }

    /// Returns how long a session may sleep.
    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns the maximum size of all files.
    pub(super) fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Returns the path of the journal of a session's run.
    pub(super) fn journal(&self, owner: &str, handle: &str) -> PathBuf {
        self.directory.join(name(owner, handle, JOURNAL))
    }

    /// Removes a journal, if it is there.
    pub(super) fn remove_journal(&self, path: &Path) {
        if let Some(name) = path.file_name() {
            // It may never have been made.
            let _ = self.open.remove_file(name);
        }
    }

    /// Returns the key with which the servers of the store seal references to runs.
    pub(super) fn key(&self) -> Result<[u8; KEY_BYTES]> {
        let shown = self.directory.join(KEY);
        let failed = || format!("cannot make or read `{}`", shown.display());
        let mut key = new_key()?;
        let name = format!(".{KEY}.{:016x}", getrandom::u64().context("there is no randomness")?);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No).mode(0o600);
        let written = self.open.open_with(&name, &options);
        let written = written.and_then(|mut file| file.write_all(&key));
        // Another server may have made one at the same time, and the first one counts.
        let made = written.and_then(|()| self.open.hard_link(&name, &self.open, KEY));
        let _ = self.open.remove_file(&name);
        match made {
            Ok(()) => return Ok(key),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(failed),
        }
        let options = OpenOptions::new().read(true).follow(FollowSymlinks::No).clone();
        let mut file = self.open.open_with(KEY, &options).with_context(failed)?;
        file.read_exact(&mut key).with_context(failed)?;
        Ok(key)
    }

    /// Saves a session. The error says why it cannot be.
    pub(super) fn keep(
        &self,
        owner: &str,
        handle: &str,
        session: &mut Session,
    ) -> Result<(), String> {
        let name = name(owner, handle, EXTENSION);
        let saved = session.save(self.directory.join(&name));
        saved.map_err(|error| in_options(&error.to_string()))?;
        let size = self.open.symlink_metadata(&name).map_or(0, |file| file.len());
        if size > self.max_bytes {
            self.remove(owner, handle);
            return Err(format!(
                "it takes {}, the limit is {} (`--store-size`)",
                shown_bytes(size),
                shown_bytes(self.max_bytes)
            ));
        }
        // A later call tries again to remove the rest.
        let _ = self.trim();
        Ok(())
    }

    /// Returns the turn to wake a session. Calls with the same handle may come at the same time.
    pub(super) fn turn(&self, handle: &str) -> Arc<Turn> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(handle).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(handle.to_owned(), Arc::downgrade(&turn));
        turn
    }

    /// Takes a session away to wake it, if it is there.
    pub(super) fn take(&self, owner: &str, handle: &str) -> Result<Option<Taken>> {
        let name = name(owner, handle, EXTENSION);
        let mut random = [0; 8];
        getrandom::fill(&mut random).context("there is no randomness")?;
        let random = u64::from_le_bytes(random);
        let aside = format!(".{name}.{random:016x}");
        let unwoken = || format!("cannot wake a session in `{}`", self.directory.display());
        match self.open.rename(&name, &self.open, &aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(unwoken),
        }
        let path = self.directory.join(&aside);
        let taken = Taken { directory: Arc::clone(&self.open), name, aside, path };
        // So that it does not look left behind.
        let options = OpenOptions::new().append(true).follow(FollowSymlinks::No).clone();
        let touched = self.open.open_with(&taken.aside, &options);
        let touched = touched.and_then(|file| file.into_std().set_modified(SystemTime::now()));
        touched.with_context(unwoken)?;
        Ok(Some(taken))
    }

    /// Forgets a session. Returns `false` if it does not sleep here.
    pub(super) fn remove(&self, owner: &str, handle: &str) -> bool {
        self.open.remove_file(name(owner, handle, EXTENSION)).is_ok()
    }

    /// Removes sessions that have slept and runs that have waited for too long, those that exceed
    /// the size limit, and files that ended servers have left behind.
    pub(super) fn trim(&self) -> io::Result<()> {
        let now = SystemTime::now();
        let mut sleeping = Vec::new();
        for entry in self.open.entries()? {
            let name = entry?.file_name();
            let Some(is_whole) = is_whole(&name) else { continue };
            // Another server may have taken it since.
            let Ok(found) = self.open.symlink_metadata(&name) else { continue };
            let modified = found.modified()?.into_std();
            let age = now.duration_since(modified).unwrap_or_default();
            if age >= if is_whole { self.ttl } else { LEFT_BEHIND } {
                let _ = self.open.remove_file(&name);
            } else if is_whole {
                sleeping.push((modified, found.len(), name));
            }
        }
        sleeping.sort_unstable_by(|one, other| other.cmp(one));
        let mut total = 0u64;
        for (_, size, name) in sleeping {
            total = total.saturating_add(size);
            if total > self.max_bytes {
                let _ = self.open.remove_file(&name);
            }
        }
        Ok(())
    }
}

/// Returns the name of a session's file.
fn name(owner: &str, handle: &str, extension: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(owner.as_bytes()).update(&[0]).update(handle.as_bytes());
    format!("{}.{extension}", hasher.finalize().to_hex())
}

/// A session that is being woken. It goes back when this is dropped.
pub(super) struct Taken {
    directory: Arc<Dir>,
    name: String,
    /// The file's name while the session is being woken.
    aside: String,
    path: PathBuf,
}

impl Taken {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file: the session is awake.
    pub(super) fn remove(self) {
        // If it cannot be removed, it is left behind. It is not woken again.
        let _ = self.directory.remove_file(&self.aside);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // It may have been removed.
        let _ = self.directory.rename(&self.aside, &self.directory, &self.name);
    }
}

/// Returns whether a file of this name is a session or a journal, or a session that is being
/// written or woken; `None` if it belongs to somebody else.
fn is_whole(name: &OsStr) -> Option<bool> {
    let name = name.to_str()?;
    let (rest, is_whole) = match name.strip_prefix('.') {
        Some(rest) => (rest.rsplit_once('.')?.0, false),
        None => (name, true),
    };
    let (hash, extension) = rest.split_once('.')?;
    if extension != EXTENSION && (extension != JOURNAL || !is_whole) {
        return None;
    }
    let is_ours = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then_some(is_whole)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn store(directory: &Path, ttl: Duration, max_bytes: u64) -> Store {
        let open = Arc::new(Dir::open_ambient_dir(directory, ambient_authority()).unwrap());
        Store { directory: Arc::from(directory), open, ttl, max_bytes, turns: Arc::default() }
    }

    fn put(store: &Store, handle: &str, age: Duration, bytes: usize) {
        let path = store.directory.join(name("me", handle, EXTENSION));
        fs::write(&path, vec![0; bytes]).unwrap();
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn there(store: &Store, handles: &[&str]) -> Vec<bool> {
        handles
            .iter()
            .map(|handle| store.directory.join(name("me", handle, EXTENSION)).exists())
            .collect()
    }

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn what_has_slept_too_long_or_longest_makes_room_and_other_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), DAY * 7, 100);
        put(&store, "old", DAY * 7, 1);
        put(&store, "large", DAY * 3, 50);
        put(&store, "second", DAY, 60);
        put(&store, "newest", Duration::ZERO, 30);
        let others = ["notes.session", "README", ".hidden"].map(|name| directory.path().join(name));
        for other in &others {
            fs::write(other, vec![0; 1000]).unwrap();
        }
        store.trim().unwrap();
        let handles = ["old", "large", "second", "newest"];
        assert_eq!(there(&store, &handles), [false, false, true, true]);
        assert!(others.iter().all(|other| other.exists()));
    }

    #[test]
    fn a_session_is_taken_once_and_goes_back_unless_it_was_woken() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), DAY * 7, 100);
        put(&store, "s_1", DAY, 10);
        assert!(store.take("another", "s_1").unwrap().is_none());
        let taken = store.take("me", "s_1").unwrap().unwrap();
        assert!(store.take("me", "s_1").unwrap().is_none());
        store.trim().unwrap();
        assert_eq!(fs::read(taken.path()).unwrap(), [0; 10]);
        drop(taken);
        store.take("me", "s_1").unwrap().unwrap().remove();
        assert!(store.take("me", "s_1").unwrap().is_none());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_server_has_left_behind_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), DAY * 7, 100);
        put(&store, "s_1", DAY, 10);
        let taken = store.take("me", "s_1").unwrap().unwrap();
        let file = File::options().append(true).open(taken.path()).unwrap();
        file.set_modified(SystemTime::now() - LEFT_BEHIND).unwrap();
        store.trim().unwrap();
        assert!(!taken.path().exists());
    }

    #[test]
    fn calls_with_the_same_handle_take_turns_and_others_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path(), DAY, 100);
        let (first, again, other) = (store.turn("a"), store.turn("a"), store.turn("b"));
        let held = first.try_lock().unwrap();
        assert!(again.try_lock().is_err() && other.try_lock().is_ok());
        drop(held);
        drop((first, again, other));
        store.turn("c");
        assert_eq!(store.turns.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_directory_that_others_may_use_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/store");
        let args = || StoreSettings { directory: path.clone(), ttl: DAY, max_bytes: 100 };
        assert!(Store::open(&args()).is_ok());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let error = Store::open(&args()).err().unwrap().to_string();
        assert!(error.contains("`chmod 700` it"), "{error}");
    }
}
