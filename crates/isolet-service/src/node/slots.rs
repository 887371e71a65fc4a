//! Slots for sessions, and the queue of starts that wait for one.
//!
//! A tenant's starts get slots in order; tenants take turns. A slot that becomes free goes straight
//! to the next start in the queue, so a new request cannot overtake it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::Refusal;
use super::memory::{LastReading, Memory};
use super::tenants::Tenant;
use isolet::internals::lock;

/// How soon to check the available memory again.
const MEMORY_AGAIN: Duration = Duration::from_millis(100);

/// The shortest and the longest pause before queued starts that wait for memory or a rate are
/// checked again.
const AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

/// Counts sessions, from before each starts until it has ended, and queues starts.
pub(crate) struct Slots {
    /// The maximum number of sessions.
    most: usize,
    /// The maximum number of queued starts of one tenant.
    most_waiting: usize,
    /// The part of the memory to keep free.
    reserve: f64,
    memory: LastReading,
    state: Mutex<State>,
    /// Notified when a start waits for memory or a rate.
    timed: Notify,
}

#[derive(Default)]
struct State {
    all: usize,
    tenants: HashMap<String, TenantQueue>,
    /// Tenants with queued starts, in the order of their turns.
    turns: VecDeque<String>,
}

/// A tenant's sessions and queued starts.
#[derive(Default)]
struct TenantQueue {
    sessions: usize,
    waiting: VecDeque<Waiting>,
}

/// A queued start.
struct Waiting {
    tenant: Arc<Tenant>,
    sender: oneshot::Sender<Slot>,
}

/// Counts as one session of a tenant until it is dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    tenant: String,
}

impl Slots {
    pub(crate) fn new(most: usize, most_waiting: usize, reserve: f64) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_waiting,
            reserve,
            memory: LastReading::default(),
            state: Mutex::default(),
            timed: Notify::new(),
        })
    }

    /// Returns the number of sessions.
    pub(crate) fn all(&self) -> usize {
        lock(&self.state).all
    }

    /// Waits in the queue for a slot, at most for `patience`. Dropping the future leaves the queue.
    pub(crate) async fn take(
        self: &Arc<Self>,
        tenant: &Arc<Tenant>,
        patience: Duration,
    ) -> Result<Slot, Refusal> {
        let mut slot = self.queue(tenant)?;
        self.hand_out();
        match tokio::time::timeout(patience, &mut slot).await {
            Ok(Ok(slot)) => Ok(slot),
            // It may have arrived at this moment.
            _ => slot.try_recv().map_err(|_| self.missing(tenant)),
        }
    }

    fn queue(&self, tenant: &Arc<Tenant>) -> Result<oneshot::Receiver<Slot>, Refusal> {
        let mut state = lock(&self.state);
        let own = state.tenants.entry(tenant.name.clone()).or_default();
        // Starts whose clients are gone leave the queue.
        own.waiting.retain(|waiting| !waiting.sender.is_closed());
        if own.waiting.len() >= self.most_waiting {
            let waiting = own.waiting.len();
            return Err(Refusal::Quota(format!("waiting starts of this key: limit {waiting}")));
        }
        let (sender, slot) = oneshot::channel();
        own.waiting.push_back(Waiting { tenant: Arc::clone(tenant), sender });
        if !state.turns.contains(&tenant.name) {
            state.turns.push_back(tenant.name.clone());
        }
        Ok(slot)
    }

    /// Hands free slots to queued starts.
    fn hand_out(self: &Arc<Self>) {
        if self.hand_out_at(Instant::now()).is_some() {
            self.timed.notify_one();
        }
    }

    /// As `hand_out`, at this time. Returns when to check again.
    fn hand_out_at(self: &Arc<Self>, now: Instant) -> Option<Duration> {
        let (mut handed, mut again) = (Vec::new(), None);
        let mut state = lock(&self.state);
        while let Some(waiting) = state.next(self, now, &mut again) {
            handed.push(waiting);
        }
        state.forget_unused();
        drop(state);
        // Outside of the lock, because dropping a slot that was not accepted hands out slots again.
        for Waiting { tenant, sender } in handed {
            let _ = sender.send(Slot { slots: Arc::clone(self), tenant: tenant.name.clone() });
        }
        again
    }

    /// Checks queued starts again when memory or a rate may permit them.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        loop {
            let again = self.hand_out_at(Instant::now());
            let more = self.timed.notified();
            match again {
                // A new start may have to be checked sooner.
                Some(after) => {
                    let _ = tokio::time::timeout(after.clamp(AGAIN.0, AGAIN.1), more).await;
                }
                None => more.await,
            }
        }
    }

    /// Returns why a tenant's start has to wait.
    fn missing(&self, tenant: &Tenant) -> Refusal {
        let state = lock(&self.state);
        let sessions = state.tenants.get(&tenant.name).map_or(0, |own| own.sessions);
        let missing = self.lacks(state.all, sessions, tenant, Instant::now());
        // The resource was free for a moment, and went to another start.
        missing.unwrap_or(Refusal::Full(self.most))
    }

    /// Returns the limit that stops one more session of a tenant; `None` if it may start.
    fn lacks(&self, all: usize, sessions: usize, of: &Tenant, now: Instant) -> Option<Refusal> {
        let (quota, rate) = (of.most_sessions(self.most), of.quotas.starts);
        if all >= self.most {
            return Some(Refusal::Full(self.most));
        }
        if sessions >= quota {
            return Some(Refusal::Quota(format!("sessions of this key: limit {quota}")));
        }
        if let Some(memory) = self.memory.memory().filter(|memory| self.is_too_little(*memory)) {
            return Some(Refusal::Memory(memory));
        }
        of.starts.wait(rate, now).map(|after| Refusal::TooFast(rate, after))
    }

    fn is_too_little(&self, memory: Memory) -> bool {
        memory.is_below(self.reserve)
    }
}

impl State {
    /// Removes the next start that may begin from the queue. Lowers `again` to the time of the next
    /// check.
    fn next(
        &mut self,
        slots: &Slots,
        now: Instant,
        again: &mut Option<Duration>,
    ) -> Option<Waiting> {
        for _ in 0..self.turns.len() {
            if self.all >= slots.most {
                return None;
            }
            let name = self.turns.pop_front()?;
            let Some(own) = self.tenants.get_mut(&name) else { continue };
            own.waiting.retain(|waiting| !waiting.sender.is_closed());
            let Some(first) = own.waiting.front() else { continue };
            let rate = first.tenant.quotas.starts;
            let lacks = slots.lacks(self.all, own.sessions, &first.tenant, now);
            let after = match lacks {
                None => first.tenant.starts.take(rate, now).err(),
                Some(Refusal::Memory(_)) => Some(MEMORY_AGAIN),
                Some(Refusal::TooFast(_, after)) => Some(after),
                // Not before a session ends.
                Some(_) => Some(Duration::MAX),
            };
            if let Some(after) = after {
                if after < Duration::MAX {
                    *again = Some(again.map_or(after, |again| again.min(after)));
                }
                self.turns.push_back(name);
                continue;
            }
            let Some(first) = own.waiting.pop_front() else { continue };
            own.sessions += 1;
            self.all += 1;
            if !own.waiting.is_empty() {
                self.turns.push_back(name);
            }
            return Some(first);
        }
        None
    }

    fn forget_unused(&mut self) {
        self.tenants.retain(|_, own| own.sessions > 0 || !own.waiting.is_empty());
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = lock(&self.slots.state);
        state.all -= 1;
        if let Some(own) = state.tenants.get_mut(&self.tenant) {
            own.sessions -= 1;
        }
        drop(state);
        self.slots.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::node::ceiling::Ceiling;
    use crate::node::tenants::Quotas;

    /// Longer than a test takes.
    const LONG: Duration = Duration::from_hours(1);

    type Taking = Pin<Box<dyn Future<Output = Result<Slot, Refusal>>>>;

    fn tenant(name: &str, quotas: Quotas) -> Arc<Tenant> {
        Arc::new(Tenant::new(name.to_owned(), Ceiling::default(), quotas))
    }

    fn of(name: &str, sessions: usize) -> Arc<Tenant> {
        tenant(name, Quotas { sessions: Some(sessions), ..Quotas::default() })
    }

    fn slots(most: usize, most_waiting: usize) -> Arc<Slots> {
        Slots::new(most, most_waiting, 0.0)
    }

    fn poll(taking: &mut Taking) -> Option<Result<Slot, Refusal>> {
        match taking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(taken) => Some(taken),
            Poll::Pending => None,
        }
    }

    /// Starts to wait.
    fn wait(slots: &Arc<Slots>, tenant: &Arc<Tenant>) -> Taking {
        let (slots, tenant) = (Arc::clone(slots), Arc::clone(tenant));
        let mut taking: Taking = Box::pin(async move { slots.take(&tenant, LONG).await });
        assert!(poll(&mut taking).is_none());
        taking
    }

    async fn at_once(slots: &Arc<Slots>, tenant: &Arc<Tenant>) -> Result<Slot, Refusal> {
        slots.take(tenant, Duration::ZERO).await
    }

    fn taken(taking: &mut Taking) -> Slot {
        poll(taking).unwrap().ok().unwrap()
    }

    #[tokio::test]
    async fn a_place_is_taken_until_it_is_dropped_and_a_refused_one_takes_none() {
        let (all, a, b) = (slots(3, 9), of("a", 2), of("b", 0));
        let taken = [at_once(&all, &a).await.ok().unwrap(), at_once(&all, &a).await.ok().unwrap()];
        assert!(matches!(at_once(&all, &a).await, Err(Refusal::Quota(_))));
        assert!(matches!(at_once(&all, &b).await, Err(Refusal::Quota(_))));
        let third = at_once(&all, &of("c", 9)).await.ok().unwrap();
        assert!(matches!(at_once(&all, &b).await, Err(Refusal::Full(3))));
        drop((taken, third));
        assert_eq!(all.all(), 0);
        assert!(lock(&all.state).tenants.is_empty());
    }

    #[tokio::test]
    async fn who_comes_first_is_served_first_and_nobody_takes_a_place_that_another_one_waits_for() {
        let (all, a) = (slots(1, 9), of("a", 9));
        let mut slot = at_once(&all, &a).await.ok().unwrap();
        let mut waiting: VecDeque<_> = (0..4).map(|_| wait(&all, &a)).collect();
        while let Some(mut first) = waiting.pop_front() {
            drop(slot);
            // It is free for nobody but the first in line, also before that one has looked.
            assert!(matches!(at_once(&all, &a).await, Err(Refusal::Full(1))));
            assert!(waiting.iter_mut().all(|later| poll(later).is_none()));
            slot = taken(&mut first);
        }
    }

    #[tokio::test]
    async fn tenants_take_turns_and_one_at_its_quota_holds_up_no_other() {
        let (all, flood, quiet) = (slots(2, 99), of("flood", 1), of("quiet", 9));
        let first = at_once(&all, &flood).await.ok().unwrap();
        let second = at_once(&all, &quiet).await.ok().unwrap();
        let mut flooding: Vec<_> = (0..9).map(|_| wait(&all, &flood)).collect();
        let mut quieter = wait(&all, &quiet);
        drop(second);
        assert!(poll(&mut flooding[0]).is_none());
        let second = taken(&mut quieter);
        let mut again = wait(&all, &quiet);
        drop(first);
        let first = taken(&mut flooding[0]);
        drop(second);
        let _second = taken(&mut again);
        drop(first);
        assert!(poll(&mut flooding[2]).is_none());
        taken(&mut flooding[1]);
    }

    #[tokio::test]
    async fn who_goes_away_gives_up_its_place_in_line_or_the_place_that_it_was_handed() {
        let (all, a) = (slots(1, 2), of("a", 9));
        let slot = at_once(&all, &a).await.ok().unwrap();
        let [first, second] = [wait(&all, &a), wait(&all, &a)];
        let refused = at_once(&all, &a).await.err().unwrap();
        assert!(matches!(refused, Refusal::Quota(text) if text.contains("limit 2")));
        drop(first);
        let mut third = wait(&all, &a);
        drop(slot);
        assert!(poll(&mut third).is_none());
        // It was handed the slot, and its client is gone.
        drop(second);
        taken(&mut third);
        assert_eq!(all.all(), 0);
    }

    #[tokio::test]
    async fn who_waits_for_the_next_second_keeps_its_place_in_line() {
        let quotas = Quotas { starts: 0.5, ..Quotas::default() };
        let (all, slow, other) = (slots(9, 9), tenant("slow", quotas), of("other", 9));
        let _first = at_once(&all, &slow).await.ok().unwrap();
        assert!(matches!(at_once(&all, &slow).await, Err(Refusal::TooFast(..))));
        let [mut second, mut third] = [wait(&all, &slow), wait(&all, &slow)];
        let _other = at_once(&all, &other).await.ok().unwrap();
        let now = Instant::now();
        let after = all.hand_out_at(now).unwrap();
        assert!(after <= Duration::from_secs(2), "{after:?}");
        assert!(poll(&mut second).is_none());
        assert!(all.hand_out_at(now + after).is_some());
        assert!(poll(&mut third).is_none());
        let _second = taken(&mut second);
        assert_eq!(all.hand_out_at(now + 3 * after), None);
        taken(&mut third);
    }
}
