//! Creations that a client may send again, because their answers were lost: a key stands for one
//! session while that lives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;

use super::super::{Failure, lock};
use super::session::NewSession;

/// The maximum number of characters of a key.
const MAX_KEY_CHARS: usize = 255;

/// The creations of a node by tenant and key.
#[derive(Default)]
pub(super) struct Creations(Mutex<HashMap<(String, String), Arc<Creation>>>);

pub(super) struct Creation {
    /// The hash of what was asked for.
    wanted: blake3::Hash,
    /// The session's id, once it has started.
    pub(super) id: OnceCell<String>,
}

impl Creations {
    /// Returns the creation of a key.
    ///
    /// # Errors
    ///
    /// Fails if the key was sent with other wishes.
    pub(super) fn of(
        &self,
        tenant: &str,
        key: &str,
        new: &NewSession,
    ) -> Result<Arc<Creation>, Failure> {
        if key.len() > MAX_KEY_CHARS {
            let chars = key.len();
            return Err(Failure::config(format!(
                "the key of the creation has {chars} characters: limit {MAX_KEY_CHARS}"
            )));
        }
        let wanted = fingerprint(new);
        let mut all = lock(&self.0);
        let creation = all
            .entry((tenant.to_owned(), key.to_owned()))
            .or_insert_with(|| Arc::new(Creation { wanted, id: OnceCell::new() }));
        if creation.wanted == wanted {
            Ok(Arc::clone(creation))
        } else {
            Err(Failure::config(format!(
                "the key {key:?} of the creation was sent before, for another session"
            )))
        }
    }

    /// Forgets creations that have failed, and those of sessions that are gone.
    pub(super) fn forget(&self, is_gone: impl Fn(&str) -> bool) {
        lock(&self.0).retain(|_, creation| match creation.id.get() {
            Some(id) => !is_gone(id),
            // Somebody still waits for it.
            None => Arc::strong_count(creation) > 1,
        });
    }
}

/// Returns the hash of what is asked for, without a text of it.
fn fingerprint(new: &NewSession) -> blake3::Hash {
    struct Hashing(blake3::Hasher);

    impl std::fmt::Write for Hashing {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }

    let mut hashing = Hashing(blake3::Hasher::new());
    // Hashing does not fail.
    let _ = std::fmt::Write::write_fmt(&mut hashing, format_args!("{new:?}"));
    hashing.0.finalize()
}

#[cfg(test)]
mod tests {
    use isolet::Value;

    use super::*;

    fn wanted(ttl: f64) -> NewSession {
        let policy = Value::Dict(Vec::new());
        NewSession { policy, ttl: Some(ttl), ..NewSession::default() }
    }

    #[test]
    fn a_key_is_one_creation_of_one_tenant_until_its_session_is_gone() {
        let creations = Creations::default();
        let first = creations.of("a", "k", &wanted(1.0)).ok().unwrap();
        first.id.set("id-1".to_owned()).unwrap();
        let again = creations.of("a", "k", &wanted(1.0)).ok().unwrap();
        assert_eq!(again.id.get().map(String::as_str), Some("id-1"));
        assert!(creations.of("b", "k", &wanted(1.0)).ok().unwrap().id.get().is_none());
        let other = creations.of("a", "k", &wanted(2.0)).err().unwrap();
        assert!(other.message.contains("\"k\""), "{}", other.message);
        assert!(creations.of("a", &"k".repeat(256), &wanted(1.0)).is_err());
        creations.forget(|id| id == "id-1");
        assert!(creations.of("a", "k", &wanted(2.0)).ok().unwrap().id.get().is_none());
    }
}
