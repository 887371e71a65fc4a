//! Idempotency keys: a client whose answer was lost sends the creation again with its key, and gets
//! the same session for as long as it lives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;

use super::session::NewSession;
use crate::core::Failure;
use crate::core::tokens::{Marshal, Stopped, Token, Tokens, tokens};
use isolet::internals::lock;

/// The maximum number of characters of a key.
const MAX_KEY_CHARS: usize = 255;

/// The creations of a node, by tenant and key.
#[derive(Default)]
pub(crate) struct IdempotencyCache(Mutex<HashMap<(String, String), Arc<Creation>>>);

pub(crate) struct Creation {
    /// The hash of the request.
    wanted: blake3::Hash,
    /// The session's id, once it has started.
    pub(crate) id: OnceCell<String>,
}

impl IdempotencyCache {
    /// Returns the creation of a key.
    ///
    /// # Errors
    ///
    /// Fails if the key was used before with another request.
    pub(crate) fn of(
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
        let wanted = fingerprint(new)?;
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

    /// Removes failed creations, and those whose sessions have ended.
    pub(crate) fn forget(&self, is_gone: impl Fn(&str) -> bool) {
        lock(&self.0).retain(|_, creation| match creation.id.get() {
            Some(id) => !is_gone(id),
            // A request still waits for it.
            None => Arc::strong_count(creation) > 1,
        });
    }
}

/// Returns the hash of a request, over its serialised form.
fn fingerprint(new: &NewSession) -> Result<blake3::Hash, Failure> {
    struct Hashing {
        hasher: blake3::Hasher,
        part: Vec<u8>,
    }

    impl Tokens for Hashing {
        fn take(&mut self, token: Token<'_>) -> Result<(), Stopped> {
            match token {
                // Without a copy, because texts and bytes may be large.
                Token::Str(text) => {
                    self.hasher.update(b"u").update(&text.len().to_le_bytes());
                    self.hasher.update(text.as_bytes());
                }
                Token::Bytes(bytes) => {
                    self.hasher.update(b"s").update(&bytes.len().to_le_bytes()).update(bytes);
                }
                other => {
                    self.part.clear();
                    Marshal(&mut self.part).take(other)?;
                    self.hasher.update(&self.part);
                }
            }
            Ok(())
        }
    }

    let mut hashing = Hashing { hasher: blake3::Hasher::new(), part: Vec::new() };
    tokens(new, &mut hashing).map_err(|stopped| {
        Failure::config(format!("the creation cannot be told from others: {stopped}"))
    })?;
    Ok(hashing.hasher.finalize())
}

#[cfg(test)]
mod tests {
    use isolet::Value;

    use super::*;
    use crate::core::{Plain, Policy};

    fn wanted(ttl: f64) -> NewSession {
        NewSession { ttl: Some(ttl), ..NewSession::default() }
    }

    #[test]
    fn a_creation_is_told_from_others_by_all_that_it_asks_for() {
        let asked = |policy: &str, inputs: &[(&str, Value)], metadata: Value| {
            let policy = Policy::read(serde_json::from_str(policy).unwrap()).unwrap();
            let inputs = inputs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            let (inputs, metadata) = (inputs.collect(), Plain(metadata));
            fingerprint(&NewSession { policy, inputs, metadata, ..NewSession::default() }).unwrap()
        };
        let tool = r#"{"tools": [{"name": "a", "parameters": [{"name": "b"}]}]}"#;
        let with_default =
            r#"{"tools": [{"name": "a", "parameters": [{"name": "b", "default": null}]}]}"#;
        let big = Value::from(1i128 << 100);
        let all = [
            asked("{}", &[], Value::None),
            asked("{}", &[], "None".into()),
            asked("{}", &[("a", "bc".into())], Value::None),
            asked("{}", &[("ab", "c".into())], Value::None),
            asked("{}", &[("a", Value::bytes(b"bc".to_vec()))], Value::None),
            asked("{}", &[("a", big.clone())], Value::None),
            asked("{}", &[("a", big.to_string().into())], Value::None),
            asked(r#"{"limits": {"memory_bytes": 1}}"#, &[], Value::None),
            asked(r#"{"limits": {"stdout_bytes": 1}}"#, &[], Value::None),
            asked(tool, &[], Value::None),
            asked(with_default, &[], Value::None),
        ];
        for (nth, one) in all.iter().enumerate() {
            assert!(!all[..nth].contains(one), "{nth}");
        }
        assert_eq!(
            asked(tool, &[("a", big)], 1.into()),
            asked(tool, &[("a", Value::from(1i128 << 100))], 1.into())
        );
    }

    #[test]
    fn a_key_is_one_creation_of_one_tenant_until_its_session_is_gone() {
        let cache = IdempotencyCache::default();
        let first = cache.of("a", "k", &wanted(1.0)).ok().unwrap();
        first.id.set("id-1".to_owned()).unwrap();
        let again = cache.of("a", "k", &wanted(1.0)).ok().unwrap();
        assert_eq!(again.id.get().map(String::as_str), Some("id-1"));
        assert!(cache.of("b", "k", &wanted(1.0)).ok().unwrap().id.get().is_none());
        let other = cache.of("a", "k", &wanted(2.0)).err().unwrap();
        assert!(other.message.contains("\"k\""), "{}", other.message);
        assert!(cache.of("a", &"k".repeat(256), &wanted(1.0)).is_err());
        cache.forget(|id| id == "id-1");
        assert!(cache.of("a", "k", &wanted(2.0)).ok().unwrap().id.get().is_none());
    }
}
