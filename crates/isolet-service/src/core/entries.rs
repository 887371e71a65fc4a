//! Entries of a policy: mounts and secrets, as plain values.

use std::path::PathBuf;

use isolet::{Mount, Secret};
use serde::{Deserialize, Serialize};

use super::Failure;

/// A directory of the server's machine that guests see.
#[derive(Clone, Deserialize, Serialize, utoipa::ToSchema)]
#[schema(as = Mount)]
#[serde(deny_unknown_fields)]
pub(crate) struct MountEntry {
    /// The directory's path on the server's machine.
    #[schema(value_type = String)]
    pub(super) host: PathBuf,
    /// Its path in the guest.
    pub(super) guest: String,
    #[serde(default)]
    mode: ModeEntry,
    /// The most bytes that a session may write.
    #[serde(default)]
    quota_bytes: Option<u64>,
    /// The most files that a session may create.
    #[serde(default)]
    quota_files: Option<u64>,
}

/// A directory of the server's machine, as guests see it.
#[derive(Serialize, utoipa::ToSchema)]
pub struct AllowedMount {
    /// Its path in the guest.
    guest: String,
    mode: ModeEntry,
}

impl AllowedMount {
    pub(crate) fn of(mount: MountEntry) -> Self {
        Self { guest: mount.guest, mode: mount.mode }
    }
}

/// A secret, such as the key of an API.
#[derive(Clone, Deserialize, Serialize, utoipa::ToSchema)]
#[schema(as = Secret)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretEntry {
    /// The secret, of 8 to 4,096 bytes.
    pub(crate) value: String,
    /// The hosts that get it: `api.example.com`, `*.example.com:8443`, or `http://localhost:8000`
    /// for a connection that is not encrypted.
    hosts: Vec<String>,
    /// Whether bodies of requests get it, too.
    #[serde(default)]
    in_bodies: bool,
}

impl SecretEntry {
    pub(super) fn secret(&self) -> Secret {
        let secret = self.hosts.iter().fold(Secret::new(&self.value), Secret::host);
        if self.in_bodies { secret.in_bodies() } else { secret }
    }
}

/// What a session may do with a mount: read it, write to its own copy, or write.
#[derive(Clone, Copy, Default, Deserialize, Serialize, utoipa::ToSchema)]
#[schema(as = MountMode)]
#[serde(rename_all = "snake_case")]
enum ModeEntry {
    #[default]
    Ro,
    Overlay,
    Rw,
}

impl MountEntry {
    pub(super) fn is_writable(&self) -> bool {
        matches!(self.mode, ModeEntry::Rw)
    }

    pub(super) fn open(&self) -> Result<Mount, Failure> {
        let mut mount = match self.mode {
            ModeEntry::Ro => Mount::read_only(&self.host)?,
            ModeEntry::Overlay => Mount::overlay(&self.host)?,
            ModeEntry::Rw => Mount::read_write(&self.host)?,
        };
        if let Some(bytes) = self.quota_bytes {
            mount = mount.quota_bytes(bytes);
        }
        if let Some(files) = self.quota_files {
            mount = mount.quota_files(files);
        }
        Ok(mount)
    }
}
