//! Limits the bytes of requests and answers under way, for the node and for each tenant. A client
//! that sends much or does not read is refused before the node runs out of memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::{Node, Refusal, Tenant};
use crate::core::Execution;
use crate::core::tokens::{Stopped, Token, Tokens, tokens};
use isolet::internals::lock;

/// The memory that an item of a value takes, and the longest escape of a byte in JSON.
const ITEM_BYTES: u64 = 32;
const ESCAPED_BYTES: u64 = 6;

/// Values are measured up to this many bytes.
const MOST_WEIGHED: u64 = 64 << 20;

tokio::task_local! {
    /// The results of the request that is carried out.
    static RESULTS: RefCell<Results>;
}

/// What has come of a request whose answer is not written yet.
#[derive(Default)]
pub struct Results {
    /// The charges of its results, to be kept until the answer is charged.
    charges: Vec<Charge>,
    /// The id of the session that it has started.
    session: Option<String>,
}

impl Results {
    /// Returns the id of the session that the request has started, the last one of several.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

/// Carries out a request. Also returns its results, to be kept until the answer is charged.
pub async fn with_results<F: Future>(work: F) -> (F::Output, Results) {
    let all = async { (work.await, RESULTS.with(RefCell::take)) };
    RESULTS.scope(RefCell::default(), all).await
}

/// Notes that the current request has started a session.
pub(crate) fn note_session(id: &str) {
    // A WebSocket's session starts outside of such a scope.
    let _ = RESULTS.try_with(|results| results.borrow_mut().session = Some(id.to_owned()));
}

/// The size of a value in memory, and the length of its texts as JSON.
#[derive(Debug, Default, PartialEq)]
struct Weight {
    memory: u64,
    json: u64,
}

impl Weight {
    fn of(result: &impl Serialize) -> Self {
        let mut weight = Self::default();
        // Measuring stops at `MOST_WEIGHED`.
        let _ = tokens(result, &mut weight);
        weight
    }
}

impl Tokens for Weight {
    fn take(&mut self, token: Token<'_>) -> Result<(), Stopped> {
        match token {
            Token::Str(text) => {
                let is_escaped = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
                let escaped = text.bytes().filter(is_escaped).count() as u64;
                self.memory += text.len() as u64;
                self.json += text.len() as u64 + escaped * (ESCAPED_BYTES - 1);
            }
            Token::Bytes(bytes) | Token::BigInt(bytes) => {
                self.memory += bytes.len() as u64;
                self.json += bytes.len() as u64 * 2;
            }
            Token::EndDict => {}
            _ => self.memory += ITEM_BYTES,
        }
        if self.memory >= MOST_WEIGHED { Err(Stopped::enough()) } else { Ok(()) }
    }
}

pub(crate) struct InFlight {
    most: u64,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    all: u64,
    tenants: HashMap<String, u64>,
}

/// Bytes charged to a tenant until this is dropped.
pub struct Charge {
    of: Arc<InFlight>,
    tenant: Arc<Tenant>,
    bytes: u64,
}

impl InFlight {
    pub(crate) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, used: Mutex::default() })
    }

    /// Returns how many bytes a tenant may have under way: at most half of the node's, so that
    /// others have the rest.
    fn most_of(&self, tenant: &Tenant) -> u64 {
        tenant.quotas.in_flight.min(self.most / 2)
    }

    /// Fails if this many more bytes exceed a limit.
    fn check(&self, used: &Used, tenant: &Tenant, bytes: u64) -> Result<(), Refusal> {
        let most = self.most_of(tenant);
        let own = used.tenants.get(&tenant.name).copied().unwrap_or_default();
        if own.saturating_add(bytes) > most {
            return Err(Refusal::Quota(format!(
                "bytes of requests and unread answers of this key at once: limit {most}, under \
                 way {own}, and {bytes} more"
            )));
        }
        if used.all.saturating_add(bytes) > self.most {
            return Err(Refusal::InFlight(self.most));
        }
        Ok(())
    }
}

impl Charge {
    /// Charges more bytes.
    pub fn take(&mut self, bytes: u64) -> Result<(), Refusal> {
        let mut used = lock(&self.of.used);
        self.of.check(&used, &self.tenant, bytes)?;
        used.add(&self.tenant, bytes);
        self.bytes += bytes;
        Ok(())
    }

    /// Charges bytes that are in memory already, even above the limit. The tenant's other requests
    /// are refused then.
    pub fn note(&mut self, bytes: u64) {
        lock(&self.of.used).add(&self.tenant, bytes);
        self.bytes += bytes;
    }

    /// Replaces the charge by this many bytes, as [`note`](Self::note) does.
    pub fn hold(&mut self, bytes: u64) {
        self.clear();
        self.note(bytes);
    }

    /// Releases bytes.
    pub fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        lock(&self.of.used).subtract(&self.tenant, bytes);
        self.bytes -= bytes;
    }

    /// Releases all bytes.
    pub fn clear(&mut self) {
        self.give_back(self.bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Used {
    fn add(&mut self, tenant: &Tenant, bytes: u64) {
        if bytes > 0 {
            self.all += bytes;
            *self.tenants.entry(tenant.name.clone()).or_default() += bytes;
        }
    }

    fn subtract(&mut self, tenant: &Tenant, bytes: u64) {
        self.all -= bytes;
        if let Some(own) = self.tenants.get_mut(&tenant.name) {
            *own -= bytes;
            if *own == 0 {
                self.tenants.remove(&tenant.name);
            }
        }
    }
}

impl Node {
    /// Starts an empty charge for a request or an answer.
    pub fn charge(&self, tenant: &Arc<Tenant>) -> Charge {
        Charge { of: Arc::clone(&self.in_flight), tenant: Arc::clone(tenant), bytes: 0 }
    }

    /// Charges a result to the current request, until the charge of its answer replaces it.
    pub(crate) fn count_result(&self, tenant: &Arc<Tenant>, result: &Execution) {
        let weight = Weight::of(result);
        // A longer result is left out of the answer.
        let bytes = weight.memory.max(weight.json.min(self.max_answer()));
        // A stream has no such scope: its client's reading bounds its results.
        let _ = RESULTS.try_with(|results| {
            let mut charge = self.charge(tenant);
            charge.note(bytes);
            results.borrow_mut().charges.push(charge);
        });
    }

    /// Fails if this many more bytes of a tenant exceed a limit.
    pub fn check_in_flight(&self, tenant: &Tenant, bytes: u64) -> Result<(), Refusal> {
        let checked = self.in_flight.check(&lock(&self.in_flight.used), tenant, bytes);
        self.counted(checked)
    }
}

#[cfg(test)]
mod tests {
    use isolet::Value;

    use super::*;
    use crate::core::Plain;
    use crate::node::ceiling::Ceiling;
    use crate::node::tenants::Quotas;

    fn charge(of: &Arc<InFlight>, name: &str, in_flight: u64) -> Charge {
        let quotas = Quotas { in_flight, ..Quotas::default() };
        let tenant = Arc::new(Tenant::new(name.to_owned(), Ceiling::default(), quotas));
        Charge { of: Arc::clone(of), tenant, bytes: 0 }
    }

    #[test]
    fn a_tenant_has_half_of_the_bytes_at_most_and_gives_them_back() {
        let all = InFlight::new(100);
        let (mut a, mut more, mut b) =
            (charge(&all, "a", 1000), charge(&all, "a", 1000), charge(&all, "b", 30));
        a.take(30).unwrap();
        assert!(matches!(more.take(21), Err(Refusal::Quota(text)) if text.contains("limit 50")));
        more.take(20).unwrap();
        assert!(matches!(b.take(31), Err(Refusal::Quota(_))));
        b.take(30).unwrap();
        let mut c = charge(&all, "c", 1000);
        assert!(matches!(c.take(21), Err(Refusal::InFlight(100))));
        // An answer that is there is counted, and leaves no room.
        c.note(40);
        assert!(c.take(1).is_err());
        // Its own replace those that it had.
        c.hold(45);
        c.hold(35);
        assert_eq!((c.bytes, lock(&all.used).all), (35, 30 + 20 + 30 + 35));
        drop(a);
        c.clear();
        c.take(50).unwrap();
        drop((more, b, c));
        let used = lock(&all.used);
        assert!(used.all == 0 && used.tenants.is_empty());
    }

    #[test]
    fn a_result_counts_for_what_it_takes_as_it_is_or_as_json() {
        let weight = |value: &Value| {
            let weight = Weight::of(&Plain(value.clone()));
            (weight.memory, weight.json)
        };
        assert_eq!(weight(&"x".repeat(1000).into()), (1000, 1000));
        assert_eq!(weight(&"\0".repeat(1000).into()), (1000, 6000));
        assert_eq!(weight(&Value::bytes(vec![0; 1000])), (1000, 2000));
        let list = Value::List(vec![Value::None; 100]);
        assert_eq!(weight(&list), (101 * ITEM_BYTES, 0));
        assert_eq!(weight(&Value::dict([("ab", list)])), (102 * ITEM_BYTES + 2, 2));
        assert_eq!(weight(&Value::List(vec![Value::None; 3_000_000])).0, MOST_WEIGHED);
    }
}
