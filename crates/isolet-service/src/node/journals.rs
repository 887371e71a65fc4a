//! The directory of a node's durable sessions: each has a journal, and a description from which
//! another process of the node makes the session again. Unlike the store, it outlives the node.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use isolet::Value;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::Refusal;
use super::config::JournalSettings;
use super::private_directory;
use super::tenants::Tenant;
use crate::core::tokens::{Marshal, tokens};
use crate::core::{JournalEntry, Plain, Policy};
use isolet::internals::lock;

/// The version of the descriptions.
const VERSION: u32 = 1;

/// The maximum size of a description, in bytes. Policies and metadata are much smaller.
const MAX_DESCRIPTION: u64 = 16 << 20;

/// The maximum memory of a decoded description, in bytes.
const MAX_DECODED: u64 = 64 << 20;

/// The digest before a description.
const DIGEST_BYTES: usize = blake3::OUT_LEN;

const DESCRIPTION: &str = "session";
const JOURNAL: &str = "journal";
/// A description that is being written.
const UNFINISHED: &str = "new";

pub(crate) struct Journals {
    directory: PathBuf,
    /// The maximum size of all journals, in bytes.
    size: u64,
    /// The maximum size of one.
    session_size: u64,
    /// The number of sessions of each tenant, which each have room for a whole journal.
    sessions: Mutex<HashMap<String, u64>>,
    /// Locked while this process uses the directory for its node.
    _secret: File,
}

/// What another process has to know of a session, besides its journal.
#[derive(Clone)]
pub(crate) struct Description {
    pub(crate) tenant: String,
    /// As the client has given it: what it is allowed is decided again.
    pub(crate) policy: Policy,
    pub(crate) metadata: Plain,
    pub(crate) created: SystemTime,
    pub(crate) deadline: SystemTime,
    /// Set if it ends with its first run.
    pub(crate) has_one_run: bool,
}

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    tenant: &'a str,
    policy: &'a Policy,
    metadata: &'a Plain,
    created: f64,
    deadline: f64,
    has_one_run: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Found {
    version: u32,
    tenant: String,
    policy: Value,
    metadata: Value,
    created: f64,
    deadline: f64,
    has_one_run: bool,
}

/// The files of a durable session, and the room for them. Dropping it before it is
/// [kept](Self::keep) removes them.
pub(crate) struct SessionFiles {
    journals: Arc<Journals>,
    tenant: String,
    id: String,
    is_kept: AtomicBool,
}

impl Journals {
    /// Opens the directory for the node of this name. Returns the secret of its tokens, too.
    ///
    /// # Errors
    ///
    /// Fails if the directory is unusable, accessible to other users, or in use by another process
    /// of this node.
    pub(crate) fn open(
        settings: JournalSettings,
        node: &str,
    ) -> Result<(Arc<Self>, [u8; 32]), String> {
        let JournalSettings { directory, size, session_size } = settings;
        let shown = directory.display();
        let failed =
            |error: io::Error| format!("cannot use the directory of journals `{shown}`: {error}");
        private_directory::make("the directory of journals", &directory)?;
        let path = directory.join(format!("{node}.secret"));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(plain_file())
            .open(&path)
            .map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                format!("another process serves the node `{node}` from the journals in `{shown}`")
            }
            TryLockError::Error(error) => failed(error),
        })?;
        let secret = secret(&mut file).map_err(failed)?;
        let sessions = Mutex::default();
        Ok((Arc::new(Self { directory, size, session_size, sessions, _secret: file }), secret))
    }

    /// Reserves room for the files of a new session.
    pub(crate) fn begin(
        self: &Arc<Self>,
        tenant: &Tenant,
        id: &str,
    ) -> Result<SessionFiles, Refusal> {
        let mut sessions = lock(&self.sessions);
        let most = self.size / self.session_size;
        let own = sessions.get(&tenant.name).copied().unwrap_or_default();
        if sessions.values().sum::<u64>() >= most {
            return Err(Refusal::Quota(format!(
                "durable sessions of the node, with results of ended ones: limit {most}"
            )));
        }
        let most = tenant.share(self.size) / self.session_size;
        if own >= most {
            return Err(Refusal::Quota(format!(
                "durable sessions of this key, with results of ended ones: limit {most}"
            )));
        }
        *sessions.entry(tenant.name.clone()).or_default() += 1;
        drop(sessions);
        Ok(self.files(&tenant.name, id, false))
    }

    fn files(self: &Arc<Self>, tenant: &str, id: &str, is_kept: bool) -> SessionFiles {
        SessionFiles {
            journals: Arc::clone(self),
            tenant: tenant.to_owned(),
            id: id.to_owned(),
            is_kept: AtomicBool::new(is_kept),
        }
    }

    /// Returns the sessions that earlier processes of the node have left: the id of each, its
    /// files, and its description or why there is none. Removes what was never finished.
    pub(crate) fn left(
        self: &Arc<Self>,
        is_own: impl Fn(&str) -> bool,
    ) -> io::Result<Vec<(SessionFiles, Result<Description, String>)>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let (Some(id), Some(kind)) = (
                path.file_stem().and_then(|stem| stem.to_str()),
                path.extension().and_then(|kind| kind.to_str()),
            ) else {
                continue;
            };
            if !is_own(id) {
                continue;
            }
            match kind {
                DESCRIPTION => ids.push(id.to_owned()),
                // Its session was never told to a client.
                JOURNAL if !self.path(id, DESCRIPTION).exists() => _ = fs::remove_file(&path),
                UNFINISHED => _ = fs::remove_file(&path),
                _ => {}
            }
        }
        let left = ids.into_iter().map(|id| {
            let found = read(&self.path(&id, DESCRIPTION));
            let tenant = found.as_ref().map_or("", |found| found.tenant.as_str());
            *lock(&self.sessions).entry(tenant.to_owned()).or_default() += 1;
            (self.files(tenant, &id, true), found)
        });
        Ok(left.collect())
    }

    fn path(&self, id: &str, kind: &str) -> PathBuf {
        self.directory.join(format!("{id}.{kind}"))
    }
}

impl SessionFiles {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the session's journal.
    pub(crate) fn journal(&self) -> JournalEntry {
        // The directory's name was checked.
        let path = self.journals.path(&self.id, JOURNAL).to_string_lossy().into_owned();
        JournalEntry::at(path, self.journals.session_size)
    }

    /// Keeps the session with this description, instead of the one before.
    pub(crate) fn keep(&self, description: &Description) -> io::Result<()> {
        let Description { tenant, policy, metadata, created, deadline, has_one_run } = description;
        let written = Written {
            version: VERSION,
            tenant,
            policy,
            metadata,
            created: seconds(*created),
            deadline: seconds(*deadline),
            has_one_run: *has_one_run,
        };
        let mut bytes = vec![0; DIGEST_BYTES];
        tokens(&written, &mut Marshal(&mut bytes))
            .map_err(|stopped| io::Error::other(format!("{stopped}")))?;
        let (digest, body) = bytes.split_at_mut(DIGEST_BYTES);
        digest.copy_from_slice(blake3::hash(body).as_bytes());
        let unfinished = self.journals.path(&self.id, UNFINISHED);
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(plain_file())
            .open(&unfinished)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        fs::rename(&unfinished, self.journals.path(&self.id, DESCRIPTION))?;
        self.is_kept.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Removes the files: no process will go on with the session.
    pub(crate) fn remove(&self) {
        // The description first: without it the journal is none.
        for kind in [DESCRIPTION, JOURNAL] {
            let _ = fs::remove_file(self.journals.path(&self.id, kind));
        }
    }
}

impl Drop for SessionFiles {
    fn drop(&mut self) {
        if !self.is_kept.load(Ordering::SeqCst) {
            self.remove();
        }
        let mut sessions = lock(&self.journals.sessions);
        if let Some(count) = sessions.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                sessions.remove(&self.tenant);
            }
        }
    }
}

/// Returns the secret in a file, which is made if the file is new.
fn secret(file: &mut File) -> io::Result<[u8; 32]> {
    let mut bytes = Vec::new();
    file.take(33).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
        file.write_all(&secret)?;
        file.sync_data()?;
        return Ok(secret);
    }
    let is_none = |_| io::Error::other("its file with the secret of tokens is damaged");
    bytes.try_into().map_err(is_none)
}

/// Reads a description.
fn read(path: &Path) -> Result<Description, String> {
    let failed = |error: io::Error| error.to_string();
    let file = OpenOptions::new().read(true).custom_flags(plain_file()).open(path);
    let file = file.map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MAX_DESCRIPTION).read_to_end(&mut bytes).map_err(failed)?;
    let (digest, body) = bytes.split_at_checked(DIGEST_BYTES).ok_or("it is too short")?;
    if digest != blake3::hash(body).as_bytes() {
        return Err("it is damaged".to_owned());
    }
    let value = Value::from_marshal(body, MAX_DECODED).map_err(|error| error.to_string())?;
    let found: Found = isolet::from_value(value).map_err(|error| error.to_string())?;
    if found.version != VERSION {
        return Err(format!("it has the version {}, and this is {VERSION}", found.version));
    }
    Ok(Description {
        tenant: found.tenant,
        policy: Policy::read(found.policy).map_err(|failure| failure.message)?,
        metadata: Plain(found.metadata),
        created: time(found.created).ok_or("its time of creation is none")?,
        deadline: time(found.deadline).ok_or("its deadline is none")?,
        has_one_run: found.has_one_run,
    })
}

/// What a link leads to is not followed, and nobody waits for the other end of a pipe.
fn plain_file() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn time(seconds: f64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

/// Returns the time of a clock that is set for a time of the monotonic one.
pub(crate) fn wall(at: Instant) -> SystemTime {
    SystemTime::now() + at.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::node::ceiling::Ceiling;
    use crate::node::tenants::Quotas;

    fn open(directory: &Path) -> Result<(Arc<Journals>, [u8; 32]), String> {
        let (directory, size, session_size) = (directory.to_owned(), 20, 10);
        Journals::open(JournalSettings { directory, size, session_size }, "n")
    }

    fn tenant(name: &str) -> Tenant {
        Tenant::new(name.to_owned(), Ceiling::default(), Quotas::default())
    }

    fn description(tenant: &str) -> Description {
        let tools = r#"[{"name": "f", "doc": "x", "parameters": [{"name": "a", "default": null,
            "schema": {"type": "integer"}}], "style": "async", "timeout": 1.5}]"#;
        let policy: serde_json::Value = serde_json::from_str(&format!(
            r#"{{"tools": {tools}, "env": {{"A": "1"}}, "limits": {{"run_time": 2.0}}, "seed": 7}}"#
        ))
        .unwrap();
        Description {
            tenant: tenant.to_owned(),
            policy: serde_json::from_value(policy).unwrap(),
            metadata: Plain(Value::dict([("a", Value::bytes(vec![0xff]))])),
            created: SystemTime::UNIX_EPOCH + Duration::from_secs(5),
            deadline: SystemTime::UNIX_EPOCH + Duration::from_secs(7),
            has_one_run: true,
        }
    }

    fn left(journals: &Arc<Journals>) -> Vec<(SessionFiles, Result<Description, String>)> {
        journals.left(|id| id.starts_with("n-")).unwrap()
    }

    #[test]
    fn a_session_that_was_kept_is_found_again_as_it_was_described_and_no_other_one_is() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("journals");
        let (journals, secret) = open(&place).unwrap();
        assert!(open(&place).err().unwrap().contains("another process"));
        let kept = journals.begin(&tenant("a"), "n-1").ok().unwrap();
        kept.keep(&description("a")).unwrap();
        let unfinished = journals.begin(&tenant("a"), "n-2").ok().unwrap();
        for id in ["n-1", "n-2", "m-1"] {
            fs::write(place.join(format!("{id}.journal")), "x").unwrap();
        }
        std::mem::forget(unfinished);
        assert!(matches!(journals.begin(&tenant("b"), "n-3"), Err(Refusal::Quota(_))));
        drop((kept, journals));
        fs::write(place.join("n-4.session"), "damaged, and long enough for a digest before it")
            .unwrap();
        std::os::unix::fs::symlink("/etc/passwd", place.join("n-5.session")).unwrap();
        let mode = fs::metadata(place.join("n.secret")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // A forgotten session holds the first one open.
        fs::rename(place.join("n.secret"), place.join("old")).unwrap();
        fs::copy(place.join("old"), place.join("n.secret")).unwrap();
        let (journals, again) = open(&place).unwrap();
        assert_eq!(secret, again);
        let (good, bad): (Vec<_>, Vec<_>) =
            left(&journals).into_iter().partition(|(_, found)| found.is_ok());
        let [(files, Ok(found))] = &good[..] else { panic!("{}", good.len()) };
        assert_eq!((files.id(), found.tenant.as_str(), bad.len()), ("n-1", "a", 2));
        let bytes = |description: &Description| {
            let mut bytes = Vec::new();
            tokens(&description.policy, &mut Marshal(&mut bytes)).unwrap();
            let Description { metadata, created, deadline, has_one_run, .. } = description;
            (bytes, metadata.0.clone(), *created, *deadline, *has_one_run)
        };
        assert_eq!(bytes(found), bytes(&description("a")));
        assert!(!place.join("n-2.journal").exists() && place.join("m-1.journal").exists());
        files.remove();
        assert!(!place.join("n-1.journal").exists() && !place.join("n-1.session").exists());
    }
}
