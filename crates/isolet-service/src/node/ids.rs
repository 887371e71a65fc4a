//! Ids of sessions. An id contains the name of the session's node, so that a proxy routes it
//! without a table, and the node's start, so that no old id matches a new session.

use std::fmt::Write;

/// The number of random characters that all ids of one start share.
const START_CHARS: usize = 8;

/// The number of random characters of one session's id.
const SESSION_CHARS: usize = 16;

/// The maximum length of a node's name. An id with a port before it must fit into a label of a
/// domain name (63 characters).
const MAX_NODE_CHARS: usize = 31;

/// The alphabet of random characters: five bits each.
const DIGITS: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyz234567";

/// Generates the ids and tokens of a node's sessions.
pub(super) struct Ids {
    /// The node's name.
    node: String,
    start: String,
    secret: [u8; 32],
}

/// Where and when the session of an id was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// On this node, since its last start.
    Here,
    /// On this node, before its last start.
    Earlier,
    /// On another node.
    Elsewhere,
}

impl Ids {
    /// Makes ids for a node of this name, which has a-z, 0-9 and inner hyphens.
    ///
    /// # Errors
    ///
    /// Fails if the name cannot be a part of ids, or there is no randomness.
    pub(super) fn new(node: &str) -> Result<Self, String> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
        Self::with_secret(node, secret)
    }

    /// As [`new`](Self::new), with the secret of tokens.
    pub(super) fn with_secret(node: &str, secret: [u8; 32]) -> Result<Self, String> {
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_good = !node.is_empty()
            && node.len() <= MAX_NODE_CHARS
            && node.bytes().all(is_plain)
            && !node.starts_with('-')
            && !node.ends_with('-');
        if !is_good {
            return Err(format!(
                "the node's name is {node:?}, and has to be 1 to {MAX_NODE_CHARS} of a-z, 0-9 and \
                 inner hyphens"
            ));
        }
        let start = random(START_CHARS).map_err(|error| error.to_string())?;
        Ok(Self { node: node.to_owned(), start, secret })
    }

    /// Returns the prefix of all ids of this start.
    pub(crate) fn prefix(&self) -> String {
        format!("{}-{}", self.node, self.start)
    }

    /// Returns `true` if `text` is the prefix of some start of this node.
    pub(crate) fn is_prefix(&self, text: &str) -> bool {
        let start = text.strip_prefix(&self.node).and_then(|rest| rest.strip_prefix('-'));
        start.is_some_and(|start| {
            start.len() == START_CHARS && start.bytes().all(|byte| DIGITS.contains(&byte))
        })
    }

    /// Returns the node's name.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Makes an id.
    pub(super) fn next(&self) -> Result<String, getrandom::Error> {
        Ok(format!("{}-{}{}", self.node, self.start, random(SESSION_CHARS)?))
    }

    /// Returns the origin of an id; `None` if the text is not an id.
    pub(super) fn origin(&self, id: &str) -> Option<Origin> {
        let (node, rest) = id.rsplit_once('-')?;
        if rest.len() != START_CHARS + SESSION_CHARS || !rest.bytes().all(|b| DIGITS.contains(&b)) {
            return None;
        }
        Some(match rest.starts_with(&self.start) {
            _ if node != self.node => Origin::Elsewhere,
            true => Origin::Here,
            false => Origin::Earlier,
        })
    }

    /// Returns the token of a session, 128 bits in hexadecimal digits. It grants access to the
    /// session.
    pub(super) fn token(&self, id: &str) -> String {
        let mac = blake3::keyed_hash(&self.secret, id.as_bytes());
        let mut token = String::with_capacity(32);
        for byte in &mac.as_bytes()[..16] {
            // Writing to a string does not fail.
            let _ = write!(token, "{byte:02x}");
        }
        token
    }

    /// Returns `true` if this is the session's token. Compares in constant time.
    pub(super) fn is_token(&self, id: &str, token: &str) -> bool {
        // Hashing first: the time of comparing two hashes reveals nothing about the token.
        blake3::hash(self.token(id).as_bytes()) == blake3::hash(token.as_bytes())
    }
}

pub(crate) fn random(chars: usize) -> Result<String, getrandom::Error> {
    let mut bytes = vec![0; chars];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.into_iter().map(|byte| char::from(DIGITS[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_which_node_and_which_start_it_is_of() {
        let (first, second) = (Ids::new("isolet-0").unwrap(), Ids::new("isolet-0").unwrap());
        let id = first.next().unwrap();
        assert!(id.starts_with("isolet-0-") && id.len() == 9 + 24, "{id}");
        assert_ne!(id, first.next().unwrap());
        assert_eq!(first.origin(&id), Some(Origin::Here));
        assert_eq!(second.origin(&id), Some(Origin::Earlier));
        assert_eq!(Ids::new("isolet").unwrap().origin(&id), Some(Origin::Elsewhere));
        for wrong in ["", "isolet-0", "isolet-0-x", &id.to_uppercase(), &format!("{id}a")] {
            assert_eq!(first.origin(wrong), None, "{wrong}");
        }
        // With a port before it, the longest is a label of a domain name.
        let long = Ids::new(&"n".repeat(MAX_NODE_CHARS)).unwrap().next().unwrap();
        assert!("49999-".len() + long.len() <= 63);
    }

    #[test]
    fn a_token_is_of_one_session_of_one_start() {
        let ids = Ids::new("n").unwrap();
        let (one, other) = (ids.next().unwrap(), ids.next().unwrap());
        assert!(ids.is_token(&one, &ids.token(&one)) && ids.token(&one).len() == 32);
        assert!(!ids.is_token(&other, &ids.token(&one)) && !ids.is_token(&one, ""));
        assert!(!Ids::new("n").unwrap().is_token(&one, &ids.token(&one)));
    }

    #[test]
    fn a_name_that_cannot_be_in_an_id_is_refused() {
        for name in ["", "N", "a.b", "-a", "a-", "a_b", &"n".repeat(MAX_NODE_CHARS + 1)] {
            let error = Ids::new(name).err().unwrap();
            assert!(error.contains(&format!("{name:?}")), "{error}");
        }
    }
}
