//! Runs that wait for their client to come back with the user's decision: the way of the protocol's
//! revision 2026-07-28, in which a server cannot ask by itself.
//!
//! The client gets a sealed reference to the run, and sends it with the answer. A reference works
//! once, for who made the call, with the same arguments, and until it expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{JsonObject, RequestStateCodec, SealOptions};

use super::approvals::Question;
use super::python::Begun;

/// The longest time that a reference may have: a longer one has no date.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// A run and the calls of it that wait for a decision.
pub(super) struct Parked {
    pub(super) begun: Begun,
    pub(super) questions: Vec<Question>,
}

pub(super) struct ParkedRuns {
    codec: RequestStateCodec,
    time: Duration,
    runs: Arc<Mutex<HashMap<String, Parked>>>,
}

impl ParkedRuns {
    /// Keeps runs for this time.
    pub(super) fn new(time: Duration) -> anyhow::Result<Self> {
        let mut key = [0u8; 32];
        getrandom::fill(&mut key)?;
        let time = time.min(LONGEST);
        Ok(Self { codec: RequestStateCodec::try_new(key)?, time, runs: Arc::default() })
    }

    /// Keeps a run, and returns the reference to it.
    pub(super) fn park(
        &self,
        owner: &str,
        arguments: &JsonObject,
        parked: Parked,
    ) -> Result<String, getrandom::Error> {
        let mut random = [0u8; 16];
        getrandom::fill(&mut random)?;
        let number = u128::from_le_bytes(random).to_string();
        let bound = bound_to(owner, arguments);
        let options = SealOptions::new().associated_data(&bound).ttl(self.time);
        let reference = self.codec.seal_with(number.as_bytes(), &options);
        self.lock().insert(number.clone(), parked);
        let (runs, time) = (Arc::clone(&self.runs), self.time);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            // Dropped after the lock: that refuses the calls and interrupts the code.
            let _late = runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        });
        Ok(reference)
    }

    /// Takes the run of a reference, if there is one.
    pub(super) fn take(
        &self,
        owner: &str,
        arguments: &JsonObject,
        reference: &str,
    ) -> Option<Parked> {
        let number = self.codec.open_with(reference, &bound_to(owner, arguments)).ok()?;
        self.lock().remove(std::str::from_utf8(&number).ok()?)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Parked>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the data that a reference is bound to: the owner of the call, and its arguments.
fn bound_to(owner: &str, arguments: &JsonObject) -> Vec<u8> {
    let arguments = serde_json::to_vec(arguments).unwrap_or_default();
    let mut bound = owner.as_bytes().to_vec();
    bound.push(0);
    bound.extend_from_slice(blake3::hash(&arguments).as_bytes());
    bound
}
