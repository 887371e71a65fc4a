//! Runs that wait for their client to come back with the user's decision: the way of the protocol's
//! revision 2026-07-28, in which a server cannot ask by itself.
//!
//! The client gets a sealed reference to the run, and sends it with the answer. A reference works
//! once, for who made the call, with the same arguments, and until it expires. With a store, the
//! servers of the store have one key, so that the next server knows the references of the last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use rmcp::model::{JsonObject, RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};

use super::approvals::{self, Question};
use super::running::Begun;
use super::store::Store;

/// The longest time that a reference may have: a longer one has no date.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// The size of the key of references, in bytes.
pub(super) const KEY_BYTES: usize = 32;

/// A run and the calls of it that wait for a decision.
pub(super) struct Parked {
    pub(super) begun: Begun,
    pub(super) questions: Vec<Question>,
}

/// What a reference says. Its client can read it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reference {
    /// The number of the run in its server.
    number: String,
    /// The handle of its session.
    pub(super) handle: String,
    /// The digest of the question, to which alone the answer applies.
    pub(super) question: String,
}

pub(super) struct ParkedRuns {
    codec: RequestStateCodec,
    time: Duration,
    runs: Arc<Mutex<HashMap<String, Parked>>>,
}

impl ParkedRuns {
    /// Keeps runs for this time.
    pub(super) fn new(time: Duration, store: Option<&Store>) -> anyhow::Result<Self> {
        let key = store.map_or_else(new_key, Store::key)?;
        let time = time.min(LONGEST);
        Ok(Self { codec: RequestStateCodec::try_new(key)?, time, runs: Arc::default() })
    }

    /// Keeps a run, and returns the reference to it.
    pub(super) fn park(
        &self,
        owner: &str,
        arguments: &JsonObject,
        parked: Parked,
    ) -> Result<String, String> {
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|error| format!("there is no randomness: {error}"))?;
        let number = u128::from_le_bytes(random).to_string();
        let bound = bound_to(owner, arguments);
        let options = SealOptions::new().associated_data(&bound).ttl(self.time);
        let reference = Reference {
            number: number.clone(),
            handle: parked.begun.handle().to_owned(),
            question: approvals::digest(&parked.questions),
        };
        let reference = serde_json::to_vec(&reference).map_err(|error| error.to_string())?;
        let reference = self.codec.seal_with(&reference, &options);
        self.lock().insert(number.clone(), parked);
        let (runs, time) = (Arc::clone(&self.runs), self.time);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            // Dropped after the lock: that refuses the calls and interrupts the code.
            let _late = runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        });
        Ok(reference)
    }

    /// Returns what a reference says, if it is one for this call.
    pub(super) fn open(
        &self,
        owner: &str,
        arguments: &JsonObject,
        reference: &str,
    ) -> Option<Reference> {
        let opened = self.codec.open_with(reference, &bound_to(owner, arguments)).ok()?;
        serde_json::from_slice(&opened).ok()
    }

    /// Takes the run of a reference, if it waits in this server.
    pub(super) fn take(&self, reference: &Reference) -> Option<Parked> {
        self.lock().remove(&reference.number)
    }

    /// Takes all runs.
    pub(super) fn take_all(&self) -> Vec<Parked> {
        self.lock().drain().map(|(_, parked)| parked).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Parked>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a key for references.
pub(super) fn new_key() -> anyhow::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).context("there is no randomness")?;
    Ok(key)
}

/// Returns the data that a reference is bound to: the owner of the call, and its arguments.
fn bound_to(owner: &str, arguments: &JsonObject) -> Vec<u8> {
    let arguments = serde_json::to_vec(arguments).unwrap_or_default();
    let mut bound = owner.as_bytes().to_vec();
    bound.push(0);
    bound.extend_from_slice(blake3::hash(&arguments).as_bytes());
    bound
}
