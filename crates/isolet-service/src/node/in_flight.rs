//! The bytes of requests and answers under way, of a node and of each tenant: who sends much, or
//! does not read, is refused more before the node has no memory left.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::{Node, Refusal, Tenant};
use crate::core::Execution;
use crate::core::tokens::{Stopped, Token, Tokens, tokens};
use isolet::internals::lock;

/// What an item of a value takes in memory, and an escaped byte of a text as JSON.
const ITEM_BYTES: u64 = 32;
const ESCAPED_BYTES: u64 = 6;

/// From how many bytes on it is not looked how many more a value takes.
const MOST_WEIGHED: u64 = 64 << 20;

tokio::task_local! {
    /// Results that are not written as answers yet.
    static RESULTS: RefCell<Vec<Charge>>;
}

/// Does what a request asks for. Returns what counts its results, to be kept until the answer does.
pub async fn with_results<F: Future>(work: F) -> (F::Output, Vec<Charge>) {
    let all = async { (work.await, RESULTS.with(RefCell::take)) };
    RESULTS.scope(RefCell::default(), all).await
}

/// How many bytes a value takes as it is, and how many its texts take as JSON.
#[derive(Debug, Default, PartialEq)]
struct Weight {
    memory: u64,
    json: u64,
}

impl Weight {
    fn of(result: &impl Serialize) -> Self {
        let mut weight = Self::default();
        // What follows is not looked at if there is much before it.
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

/// Bytes that are under way for a tenant, until this is dropped.
pub struct Charge {
    of: Arc<InFlight>,
    tenant: Arc<Tenant>,
    bytes: u64,
}

impl InFlight {
    pub(crate) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, used: Mutex::default() })
    }

    /// Returns how many bytes a tenant may have under way: half of all, so that it leaves some for
    /// others, or fewer.
    fn most_of(&self, tenant: &Tenant) -> u64 {
        tenant.quotas.in_flight.min(self.most / 2)
    }

    /// Checks that there is room for so many bytes.
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
    /// Takes more bytes.
    pub fn take(&mut self, bytes: u64) -> Result<(), Refusal> {
        let mut used = lock(&self.of.used);
        self.of.check(&used, &self.tenant, bytes)?;
        used.add(&self.tenant, bytes);
        self.bytes += bytes;
        Ok(())
    }

    /// Takes bytes that are there already, even if there is no room for them. Then there is none
    /// for others.
    pub fn note(&mut self, bytes: u64) {
        lock(&self.of.used).add(&self.tenant, bytes);
        self.bytes += bytes;
    }

    /// Has just so many bytes from now on, as [`note`](Self::note) does.
    pub fn hold(&mut self, bytes: u64) {
        self.clear();
        self.note(bytes);
    }

    /// Gives bytes back.
    pub fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        lock(&self.of.used).subtract(&self.tenant, bytes);
        self.bytes -= bytes;
    }

    /// Gives all bytes back.
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
    /// Begins to count the bytes of a request, or of an answer.
    pub fn charge(&self, tenant: &Arc<Tenant>) -> Charge {
        Charge { of: Arc::clone(&self.in_flight), tenant: Arc::clone(tenant), bytes: 0 }
    }

    /// Counts a result until the answer to the request at hand does, if that is one answer.
    pub(crate) fn count_result(&self, tenant: &Arc<Tenant>, result: &Execution) {
        let weight = Weight::of(result);
        // What is longer is left out of the answer.
        let bytes = weight.memory.max(weight.json.min(self.max_answer()));
        // Nobody counts those of a stream, which its client's reading bounds.
        let _ = RESULTS.try_with(|results| {
            let mut charge = self.charge(tenant);
            charge.note(bytes);
            results.borrow_mut().push(charge);
        });
    }

    /// Checks that a tenant may have so many more bytes under way.
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
