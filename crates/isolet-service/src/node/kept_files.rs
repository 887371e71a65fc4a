//! Files that clients leave on the node between requests, in groups. They are in memory, and a
//! tenant's group that was not used for the longest time gives way to its newer ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use super::tenants::Tenant;
use super::{Node, Refusal};
use crate::core::Failure;
use isolet::internals::lock;

/// The maximum number of a tenant's groups.
const MAX_GROUPS: usize = 10_000;

/// The maximum number of files of a group.
const MAX_FILES: usize = 1_000;

/// What a file takes besides its contents, and a group besides its files.
const OWN_BYTES: u64 = 1 << 10;

/// The number of characters of an id, all of a-z and 2-7: `LibreChat` takes no other length.
const ID_CHARS: usize = 21;

/// A file to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its name in its group, which may have directories.
    pub name: String,
    /// Its media type.
    pub kind: String,
    pub contents: Vec<u8>,
    /// Set if what runs may not replace it.
    pub is_fixed: bool,
}

/// Tells contents from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(blake3::Hash);

impl Fingerprint {
    pub fn of(contents: &[u8]) -> Self {
        Self(blake3::hash(contents))
    }
}

/// A file that is kept.
#[derive(Debug)]
pub struct KeptFile {
    pub id: String,
    pub file: NewFile,
    pub changed: SystemTime,
}

impl KeptFile {
    /// Tells its contents from others.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.file.contents)
    }

    fn bytes(&self) -> u64 {
        self.file.contents.len() as u64 + OWN_BYTES
    }
}

struct Group {
    files: Vec<Arc<KeptFile>>,
    used: Instant,
}

impl Group {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes()).sum::<u64>() + OWN_BYTES
    }
}

/// The groups by tenant and id.
#[derive(Default)]
pub(crate) struct KeptFiles(Mutex<HashMap<String, HashMap<String, Group>>>);

/// Why files are not kept, with the limit.
#[derive(Debug, PartialEq, Eq)]
enum TooMuch {
    Files(usize),
    OwnBytes(u64),
    /// Other tenants have the rest.
    AllBytes(u64),
}

/// Removes the groups that were not used for the longest time, but not `newest`, until there are
/// few enough and they have at most this many bytes.
fn make_room(groups: &mut HashMap<String, Group>, newest: &str, most: u64) {
    let mut bytes: u64 = groups.values().map(Group::bytes).sum();
    if bytes <= most && groups.len() <= MAX_GROUPS {
        return;
    }
    let others = groups.iter().filter(|(id, _)| *id != newest);
    let mut others: Vec<_> =
        others.map(|(id, group)| (group.used, id.clone(), group.bytes())).collect();
    others.sort();
    for (_, id, freed) in others {
        if bytes <= most && groups.len() <= MAX_GROUPS {
            return;
        }
        groups.remove(&id);
        bytes -= freed;
    }
}

impl KeptFiles {
    /// Adds files to a group, which need not exist. One of the same name is replaced, and keeps its
    /// id. A tenant has at most `own` bytes, and all have at most `all`.
    fn add(
        &self,
        tenant: &str,
        group: &str,
        files: Vec<KeptFile>,
        [own, all]: [u64; 2],
    ) -> Result<Vec<Arc<KeptFile>>, TooMuch> {
        let mut tenants = lock(&self.0);
        let sum = |groups: &HashMap<String, Group>| groups.values().map(Group::bytes).sum::<u64>();
        let others = tenants.iter().filter(|(name, _)| *name != tenant);
        let others: u64 = others.map(|(_, groups)| sum(groups)).sum();
        let groups = tenants.entry(tenant.to_owned()).or_default();
        let before = groups.get(group).map(|group| group.files.clone()).unwrap_or_default();
        let (mut after, mut added) = (before, Vec::with_capacity(files.len()));
        for mut file in files {
            let place = after.iter().position(|its| its.file.name == file.file.name);
            if let Some(before) = place.map(|place| after.swap_remove(place)) {
                file.id.clone_from(&before.id);
            }
            let file = Arc::new(file);
            added.push(Arc::clone(&file));
            after.push(file);
        }
        let new = Group { files: after, used: Instant::now() };
        if new.files.len() > MAX_FILES {
            return Err(TooMuch::Files(MAX_FILES));
        }
        if new.bytes() > own {
            return Err(TooMuch::OwnBytes(own));
        }
        if new.bytes() > all.saturating_sub(others) {
            return Err(TooMuch::AllBytes(all));
        }
        let most = own.min(all - others);
        groups.insert(group.to_owned(), new);
        make_room(groups, group, most);
        Ok(added)
    }

    fn of(&self, tenant: &str, group: &str) -> Option<Vec<Arc<KeptFile>>> {
        let mut tenants = lock(&self.0);
        let group = tenants.get_mut(tenant)?.get_mut(group)?;
        group.used = Instant::now();
        Some(group.files.clone())
    }

    fn remove(&self, tenant: &str, group: &str, id: &str) -> bool {
        let mut tenants = lock(&self.0);
        let group = tenants.get_mut(tenant).and_then(|groups| groups.get_mut(group));
        let Some(group) = group else { return false };
        let before = group.files.len();
        group.files.retain(|file| file.id != id);
        group.files.len() < before
    }

    /// Removes the files of removed tenants.
    pub(crate) fn forget_of(&self, is_gone: impl Fn(&str) -> bool) {
        lock(&self.0).retain(|tenant, _| !is_gone(tenant));
    }

    /// Removes the groups that were not used for this time.
    pub(crate) fn forget_unused(&self, time: Duration) {
        lock(&self.0).retain(|_, groups| {
            groups.retain(|_, group| group.used.elapsed() <= time);
            !groups.is_empty()
        });
    }
}

impl Node {
    /// Keeps files in a tenant's group: in a new one, unless it names one that is kept. Returns the
    /// group's id and the files.
    pub fn keep_files(
        &self,
        tenant: &Tenant,
        group: Option<&str>,
        files: Vec<NewFile>,
    ) -> Result<(String, Vec<Arc<KeptFile>>), Refusal> {
        let id =
            || super::ids::random(ID_CHARS).map_err(|error| Failure::config(error.to_string()));
        let known = group.filter(|group| self.kept.of(&tenant.name, group).is_some());
        let group = match known {
            Some(group) => group.to_owned(),
            None => id()?,
        };
        let changed = SystemTime::now();
        let files = files.into_iter().map(|file| Ok(KeptFile { id: id()?, file, changed }));
        let files = files.collect::<Result<Vec<_>, Failure>>()?;
        let all = self.settings.file_bytes;
        let limits = [tenant.share(all), all];
        let added = self.kept.add(&tenant.name, &group, files, limits);
        let added = self.counted(added.map_err(|too_much| {
            Refusal::Quota(match too_much {
                TooMuch::Files(limit) => format!("files of a storage session: limit {limit}"),
                TooMuch::OwnBytes(limit) => {
                    format!("bytes of files that are kept for this key: limit {limit}")
                }
                TooMuch::AllBytes(limit) => {
                    format!("bytes of files that are kept for all keys: limit {limit}")
                }
            })
        }))?;
        Ok((group, added))
    }

    /// Returns the files of a tenant's group.
    pub fn kept_files(&self, tenant: &Tenant, group: &str) -> Option<Vec<Arc<KeptFile>>> {
        self.kept.of(&tenant.name, group)
    }

    /// Returns a file of a tenant's group.
    pub fn kept_file(&self, tenant: &Tenant, group: &str, id: &str) -> Option<Arc<KeptFile>> {
        self.kept_files(tenant, group)?.into_iter().find(|file| file.id == id)
    }

    /// Removes a file. Returns `true` if the tenant had it.
    pub fn remove_kept_file(&self, tenant: &Tenant, group: &str, id: &str) -> bool {
        self.kept.remove(&tenant.name, group, id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 10 * OWN_BYTES;

    fn file(id: &str, name: &str, bytes: u64) -> KeptFile {
        let contents = vec![0; usize::try_from(bytes).unwrap()];
        let (name, kind) = (name.to_owned(), String::new());
        let file = NewFile { name, kind, contents, is_fixed: false };
        KeptFile { id: id.to_owned(), file, changed: SystemTime::UNIX_EPOCH }
    }

    fn ids(files: &[Arc<KeptFile>]) -> Vec<&str> {
        files.iter().map(|file| file.id.as_str()).collect()
    }

    #[test]
    fn a_file_is_its_tenants_and_keeps_its_id_when_it_is_replaced() {
        let kept = KeptFiles::default();
        let add = |tenant, files| kept.add(tenant, "group", files, [MOST, MOST]).unwrap();
        assert_eq!(ids(&add("a", vec![file("1", "x", 3), file("2", "y", 3)])), ["1", "2"]);
        assert_eq!(ids(&add("a", vec![file("3", "x", 5)])), ["1"]);
        let files = kept.of("a", "group").unwrap();
        assert_eq!((ids(&files), files[0].file.contents.len()), (vec!["2", "1"], 3));
        assert!(kept.of("b", "group").is_none() && !kept.remove("b", "group", "1"));
        assert_eq!(ids(&add("b", vec![file("9", "x", 1)])), ["9"]);
        assert!(kept.remove("a", "group", "1") && !kept.remove("a", "group", "1"));
        kept.forget_of(|tenant| tenant == "a");
        assert!(kept.of("a", "group").is_none() && kept.of("b", "group").is_some());
    }

    #[test]
    fn a_tenants_groups_give_way_to_its_own_newer_ones_and_never_to_those_of_others() {
        let kept = KeptFiles::default();
        let add = |tenant, group, bytes| {
            kept.add(tenant, group, vec![file(group, "x", bytes)], [MOST / 2, MOST]).map(drop)
        };
        assert_eq!(add("a", "first", OWN_BYTES), Ok(()));
        assert_eq!(add("a", "second", 0), Ok(()));
        // The first one is used again, so the second one is the oldest.
        assert!(kept.of("a", "first").is_some());
        assert_eq!(add("a", "third", 0), Ok(()));
        assert!(kept.of("a", "second").is_none() && kept.of("a", "first").is_some());
        assert_eq!(add("a", "big", MOST), Err(TooMuch::OwnBytes(MOST / 2)));
        assert!(kept.of("a", "first").is_some(), "what was refused has removed nothing");
        assert_eq!(add("b", "first", 3 * OWN_BYTES), Ok(()));
        assert_eq!(add("c", "first", 0), Err(TooMuch::AllBytes(MOST)));
        assert!(kept.of("a", "first").is_some() && kept.of("b", "first").is_some());
    }

    #[test]
    fn a_group_has_so_many_files_and_no_more() {
        let kept = KeptFiles::default();
        let files = |from: usize, to: usize| (from..to).map(|n| file("1", &n.to_string(), 0));
        let add = |files: Vec<_>| kept.add("a", "group", files, [u64::MAX; 2]).map(drop);
        assert_eq!(add(files(0, MAX_FILES).collect()), Ok(()));
        assert_eq!(add(files(0, MAX_FILES).collect()), Ok(()), "replaced");
        let more = files(MAX_FILES, MAX_FILES + 1).collect();
        assert_eq!(add(more), Err(TooMuch::Files(MAX_FILES)));
    }

    #[test]
    fn a_group_that_nobody_uses_is_removed_after_its_time() {
        let kept = KeptFiles::default();
        kept.add("a", "group", vec![file("1", "x", 1)], [MOST, MOST]).unwrap();
        kept.forget_unused(Duration::from_hours(1));
        assert!(kept.of("a", "group").is_some());
        kept.forget_unused(Duration::ZERO);
        assert!(kept.of("a", "group").is_none() && lock(&kept.0).is_empty());
    }
}
