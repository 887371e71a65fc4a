//! Directories of the host that only the `dangerous_` constructors mount.

use std::env;
use std::path::{Path, PathBuf};

use super::kernel;
use super::mount::MountMode;
use super::root::{Root, config, identity_at};
use crate::data::error::Error;

/// Why a directory is refused.
const HELD: &str = "holds configuration, secrets or programs of the host";

/// System directories, refused with all their contents.
const SYSTEM: [&str; 5] = ["/proc", "/sys", "/dev", "/etc", "/boot"];
/// Directories that are refused, but whose subdirectories are not.
const SHALLOW: [&str; 2] = ["/", "/run"];
/// Directories of programs, refused for writing with all their contents.
const PROGRAMS: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];
/// Secret directories in a home directory, refused with all their contents.
const SECRETS: [&str; 4] = [".ssh", ".aws", ".gnupg", ".config"];
/// Directories of programs in a home directory, refused for writing with all their contents.
const HOME_PROGRAMS: [&str; 3] = [".local", ".cargo", "bin"];
/// Sockets that give control over the host.
const SOCKETS: [&str; 4] = ["docker.sock", "podman.sock", "containerd.sock", "crio.sock"];

/// A refused directory. Every directory that contains it is refused as well.
struct Rule {
    directory: PathBuf,
    with_contents: bool,
}

/// Refuses a directory that exposes the host or its owner's secrets.
pub(crate) fn check(root: &Root, mode: MountMode) -> Result<(), Error> {
    check_with_home(root, mode, env::home_dir().as_deref())
}

/// As [`check`], for a given home directory.
pub(crate) fn check_with_home(
    root: &Root,
    mode: MountMode,
    home: Option<&Path>,
) -> Result<(), Error> {
    if root.is_of_kernel() {
        return Err(refusal(root, "the kernel's file systems show and change the host"));
    }
    for rule in rules(mode, home) {
        let Ok(directory) = rule.directory.canonicalize() else {
            continue;
        };
        let shown = directory.display();
        // Comparing identities also detects a directory that is mounted under another name.
        if root.host() == directory {
            return Err(refusal(root, &format!("`{shown}` {HELD}")));
        }
        if identity_at(&directory) == Some(root.identity()) {
            return Err(refusal(root, &format!("it is `{shown}`, which {HELD}")));
        }
        if directory.starts_with(root.host()) {
            return Err(refusal(root, &format!("it contains `{shown}`, which {HELD}")));
        }
        if rule.with_contents && root.host().starts_with(&directory) {
            return Err(refusal(root, &format!("it is in `{shown}`, which {HELD}")));
        }
    }
    for name in SOCKETS {
        if root.dir().symlink_metadata(name).is_ok() {
            return Err(refusal(
                root,
                &format!("it contains `{name}`, the socket of a service of the host"),
            ));
        }
    }
    Ok(())
}

fn rules(mode: MountMode, home: Option<&Path>) -> Vec<Rule> {
    let writable = mode == MountMode::ReadWrite;
    let deep = |directory| Rule { directory, with_contents: true };
    let shallow = |directory| Rule { directory, with_contents: false };
    let mut rules: Vec<Rule> = SYSTEM.iter().map(|path| deep(path.into())).collect();
    rules.extend(SHALLOW.iter().map(|path| shallow(path.into())));
    if writable {
        rules.extend(PROGRAMS.iter().chain(kernel::PROGRAMS).map(|path| deep(path.into())));
    }
    if let Some(home) = home {
        rules.push(shallow(home.to_path_buf()));
        rules.extend(SECRETS.iter().chain(kernel::SECRETS).map(|name| deep(home.join(name))));
        if writable {
            rules.extend(HOME_PROGRAMS.iter().map(|name| deep(home.join(name))));
        }
    }
    rules
}

fn refusal(root: &Root, reason: &str) -> Error {
    let host = root.host().display();
    config(format!("cannot mount `{host}`: {reason}")).with_hint(
        "mount a directory that has only what the guest needs, or use `Mount::dangerous_*`",
    )
}
