//! Reads a secret from a file that no other user may read.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The maximum size of a secret, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The most bytes of a list of access control that is looked at.
const MAX_ACL_BYTES: usize = 4096;

/// The bits of a mode for all but the owner, and those of them that no secret may have.
const OTHERS: u32 = 0o077;
const MORE_THAN_GROUP_READ: u32 = 0o037;

/// The user and groups of this process, and the members of its groups.
struct Reader<'a> {
    groups: Vec<u32>,
    /// The text of `/etc/group` and of `/etc/passwd`.
    group_file: &'a str,
    passwd_file: &'a str,
    user: u32,
}

/// Reads a file whose text is a secret.
///
/// Others may have no access to it, with one exception: a group may read a file of root if this
/// process is in the group and no other user is. Kubernetes (`fsGroup`) and systemd
/// (`LoadCredential=`) hand secrets over with mode 0440, and only root can have arranged it so.
pub fn read(path: &Path) -> Result<String> {
    let shown = path.display();
    let unreadable = || format!("cannot read `{shown}`");
    let mut file = File::open(path).with_context(unreadable)?;
    let text = |path| fs::read_to_string(path).unwrap_or_default();
    let (group_file, passwd_file) = (text("/etc/group"), text("/etc/passwd"));
    let mut groups: Vec<u32> = rustix::process::getgroups()
        .unwrap_or_default()
        .into_iter()
        .map(rustix::process::Gid::as_raw)
        .collect();
    groups.push(rustix::process::getegid().as_raw());
    let user = rustix::process::geteuid().as_raw();
    let reader = Reader { groups, group_file: &group_file, passwd_file: &passwd_file, user };
    check(&file, &reader).map_err(|reason| {
        anyhow::anyhow!(
            "others may use `{shown}`, which has a secret: {reason}; `chmod 600` it, or give it to \
             root with mode 440 and a group that only this user is in"
        )
    })?;
    let mut secret = String::new();
    let read = file.by_ref().take(MAX_BYTES + 1).read_to_string(&mut secret);
    let read = read.with_context(unreadable)?;
    ensure!(read as u64 <= MAX_BYTES, "`{shown}`: limit {MAX_BYTES} bytes, it has more");
    Ok(secret)
}

/// Fails, with the reason, if others may use a file.
fn check(file: &File, reader: &Reader<'_>) -> Result<(), String> {
    let found = file.metadata().map_err(|error| error.to_string())?;
    let is_credential =
        found.uid() == 0 && found.gid() == 0 && found.mode() & MORE_THAN_GROUP_READ == 0;
    let mut list = [0; MAX_ACL_BYTES];
    if is_credential
        && let Ok(bytes) = rustix::fs::fgetxattr(file, "system.posix_acl_access", &mut list)
        && is_only_for(list.get(..bytes).unwrap_or_default(), reader.user)
    {
        return Ok(());
    }
    check_mode(found.mode(), found.uid(), found.gid(), reader)
}

/// Returns `true` if an access control list, as the kernel gives it, admits no user but root and
/// this one, and no further group.
fn is_only_for(list: &[u8], user: u32) -> bool {
    const USER: u16 = 0x02;
    const GROUP: u16 = 0x08;
    let Some((_version, entries)) = list.split_at_checked(4) else { return false };
    let (entries, rest) = entries.as_chunks::<8>();
    rest.is_empty()
        && !entries.is_empty()
        && entries.iter().all(|entry| {
            let [tag0, tag1, _, _, id @ ..] = *entry;
            match u16::from_le_bytes([tag0, tag1]) {
                USER => [0, user].contains(&u32::from_le_bytes(id)),
                tag => tag != GROUP,
            }
        })
}

fn check_mode(mode: u32, owner: u32, group: u32, reader: &Reader<'_>) -> Result<(), String> {
    let mode = mode & 0o777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    if mode & MORE_THAN_GROUP_READ != 0 {
        return Err(format!("its mode is {mode:o}"));
    }
    if owner != 0 {
        return Err(format!("its mode is {mode:o}, and its owner user {owner}"));
    }
    if !reader.groups.contains(&group) {
        return Err(format!("its mode is {mode:o}, and this process is not in its group {group}"));
    }
    match reader.other_member(group) {
        Some(other) => Err(format!("its mode is {mode:o}, and `{other}` is in its group {group}")),
        None => Ok(()),
    }
}

impl Reader<'_> {
    /// Returns a user of a group who is neither root nor the one of this process. The group of root
    /// has only accounts of the system besides.
    fn other_member(&self, group: u32) -> Option<String> {
        if group == 0 {
            return None;
        }
        let users = self.passwd_file.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, user, primary, ..] = fields[..] else { return None };
            Some((name, user.parse::<u32>().ok()?, primary.parse::<u32>().ok()?))
        });
        let users: Vec<_> = users.collect();
        let is_known = |name: &str| {
            let of_name = users.iter().filter(|(known, ..)| *known == name);
            of_name.clone().count() > 0 && of_name.clone().all(|(_, user, _)| self.is_we(*user))
        };
        let primary = users.iter().find(|(_, user, own)| *own == group && !self.is_we(*user));
        let listed = self.group_file.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [_, _, number, members] = fields[..] else { return None };
            (number.parse() == Ok(group)).then_some(members)
        });
        let mut listed = listed.flat_map(|members| members.split(',')).map(str::trim);
        let listed = listed.find(|name| !name.is_empty() && !is_known(name));
        primary.map(|(name, ..)| *name).or(listed).map(str::to_owned)
    }

    fn is_we(&self, user: u32) -> bool {
        user == 0 || user == self.user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_that_systemd_has_given_to_this_user_is_ours() {
        let entry = |tag: u16, id: u32| {
            let mut entry = [0; 8];
            entry[..2].copy_from_slice(&tag.to_le_bytes());
            entry[4..].copy_from_slice(&id.to_le_bytes());
            entry
        };
        let list = |entries: &[[u8; 8]]| [&[2, 0, 0, 0], entries.concat().as_slice()].concat();
        let own = [entry(1, u32::MAX), entry(2, 1000), entry(4, u32::MAX), entry(0x10, u32::MAX)];
        assert!(is_only_for(&list(&own), 1000));
        assert!(!is_only_for(&list(&own), 1001));
        assert!(!is_only_for(&list(&[own[0], entry(2, 1000), entry(8, 5)]), 1000));
        assert!(!is_only_for(&[], 1000) && !is_only_for(&list(&own)[..9], 1000));
    }

    #[test]
    fn a_group_may_read_a_secret_of_root_if_it_is_only_ours() {
        let reader = Reader {
            groups: vec![1000, 2000, 3000, 4000],
            group_file: "root:x:0:\nours:x:3000:me,root\nteam:x:4000:me,you\n",
            passwd_file: "root:x:0:0::/:/bin/sh\nme:x:1000:1000::/:\nyou:x:1001:1001::/:\n\
                          he:x:1002:5000::/:\n",
            user: 1000,
        };
        let verdict = |mode, owner, group| check_mode(mode, owner, group, &reader);
        for (mode, owner, group) in [
            (0o100_600, 1000, 1000),
            (0o400, 0, 0),
            // Kubernetes' group is in no file.
            (0o440, 0, 2000),
            (0o640, 0, 3000),
        ] {
            assert_eq!(verdict(mode, owner, group), Ok(()), "{mode:o} {owner} {group}");
        }
        for (mode, owner, group, reason) in [
            (0o444, 0, 2000, "its mode is 444"),
            (0o460, 0, 2000, "its mode is 460"),
            (0o440, 1000, 2000, "its mode is 440, and its owner user 1000"),
            (0o440, 0, 6000, "its mode is 440, and this process is not in its group 6000"),
            (0o440, 0, 4000, "its mode is 440, and `you` is in its group 4000"),
        ] {
            assert_eq!(verdict(mode, owner, group), Err(reason.to_owned()));
        }
        let of_he = Reader { groups: vec![5000], ..reader };
        assert!(check_mode(0o440, 0, 5000, &of_he).unwrap_err().contains("`he` is in its group"));
    }
}
