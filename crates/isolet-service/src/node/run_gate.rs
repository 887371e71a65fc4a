//! Limits concurrent runs, and schedules queued ones.
//!
//! Each tenant has a queue, and tenants take turns, so that a tenant with many runs delays only its
//! own. A tenant with no running run starts at once, so that long runs of others cannot block it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use isolet::internals::lock;

/// Admits a number of runs at once, and always one of each tenant.
pub(super) struct RunGate {
    /// The maximum number of concurrent runs.
    most: usize,
    /// The maximum number of queued runs of one tenant.
    most_waiting: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    tenants: HashMap<String, Tenant>,
    /// Tenants with queued runs, in the order of their turns.
    turns: VecDeque<String>,
}

#[derive(Default)]
struct Tenant {
    running: usize,
    /// The maximum number of its concurrent runs.
    most: usize,
    waiting: VecDeque<oneshot::Sender<Pass>>,
}

impl Tenant {
    /// Returns `true` if it may start one more run.
    fn may_run(&self, is_full: bool) -> bool {
        self.running < self.most && (!is_full || self.running == 0)
    }

    /// Returns the number of its queued runs.
    fn waiting(&self) -> usize {
        self.waiting.iter().filter(|waiting| !waiting.is_closed()).count()
    }
}

/// Permission to run. Dropping it admits the next run.
pub(super) struct Pass {
    gate: Arc<RunGate>,
    tenant: String,
}

/// A run was refused, because the tenant has this many queued.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueIsFull(pub usize);

impl RunGate {
    pub(super) fn new(most: usize, most_waiting: usize) -> Arc<Self> {
        Arc::new(Self { most, most_waiting, state: Mutex::default() })
    }

    /// Returns the number of running and of queued runs.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.running, state.tenants.values().map(Tenant::waiting).sum())
    }

    /// Waits in the queue of a tenant that may have `most` concurrent runs. Dropping the future
    /// leaves the queue.
    pub(super) async fn enter(
        self: &Arc<Self>,
        name: &str,
        most: usize,
    ) -> Result<Pass, QueueIsFull> {
        let waiting = {
            let mut state = lock(&self.state);
            let is_full = state.running >= self.most;
            let tenant = state.tenants.entry(name.to_owned()).or_default();
            tenant.most = most;
            // Runs whose clients are gone leave the queue.
            tenant.waiting.retain(|waiting| !waiting.is_closed());
            if tenant.waiting.is_empty() && tenant.may_run(is_full) {
                tenant.running += 1;
                state.running += 1;
                return Ok(Pass { gate: Arc::clone(self), tenant: name.to_owned() });
            }
            if tenant.waiting.len() >= self.most_waiting {
                return Err(QueueIsFull(tenant.waiting.len()));
            }
            let (sender, waiting) = oneshot::channel();
            tenant.waiting.push_back(sender);
            if tenant.waiting.len() == 1 && !state.turns.iter().any(|turn| turn == name) {
                state.turns.push_back(name.to_owned());
            }
            waiting
        };
        // The gate sends before it drops a sender, so this does not fail.
        waiting.await.map_err(|_| QueueIsFull(self.most_waiting))
    }

    /// Counts the end of a tenant's run, and admits queued runs.
    fn leave(self: &Arc<Self>, name: &str) {
        let mut state = lock(&self.state);
        state.running -= 1;
        if let Some(tenant) = state.tenants.get_mut(name) {
            tenant.running -= 1;
        }
        let mut passed = Vec::new();
        while let Some((turn, sender)) = state.next(self.most) {
            state.running += 1;
            passed.push((sender, Pass { gate: Arc::clone(self), tenant: turn }));
        }
        state.forget_unused();
        drop(state);
        // Outside of the lock, because dropping a pass that was not accepted calls `leave` again.
        for (sender, pass) in passed {
            let _ = sender.send(pass);
        }
    }
}

impl State {
    /// Removes the next run from the queue, if fewer than `most` are under way.
    fn next(&mut self, most: usize) -> Option<(String, oneshot::Sender<Pass>)> {
        let is_full = self.running >= most;
        for _ in 0..self.turns.len() {
            let name = self.turns.pop_front()?;
            let Some(tenant) = self.tenants.get_mut(&name) else { continue };
            tenant.waiting.retain(|waiting| !waiting.is_closed());
            if !tenant.may_run(is_full) {
                if !tenant.waiting.is_empty() {
                    self.turns.push_back(name);
                }
                continue;
            }
            let Some(sender) = tenant.waiting.pop_front() else { continue };
            tenant.running += 1;
            if !tenant.waiting.is_empty() {
                self.turns.push_back(name.clone());
            }
            return Some((name, sender));
        }
        None
    }

    fn forget_unused(&mut self) {
        self.tenants.retain(|_, tenant| tenant.running > 0 || !tenant.waiting.is_empty());
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.leave(&self.tenant);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Entering<'a> = Pin<Box<dyn Future<Output = Result<Pass, QueueIsFull>> + 'a>>;

    fn enter<'a>(gate: &'a Arc<RunGate>, tenant: &'a str) -> Entering<'a> {
        Box::pin(gate.enter(tenant, 100))
    }

    fn poll(entering: &mut Entering<'_>) -> Option<Result<Pass, QueueIsFull>> {
        match entering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(entered) => Some(entered),
            Poll::Pending => None,
        }
    }

    fn entered(entering: &mut Entering<'_>) -> Option<Pass> {
        poll(entering).map(|entered| entered.ok().unwrap())
    }

    #[test]
    fn a_tenant_with_many_runs_waits_for_its_own() {
        let gate = RunGate::new(1, 100);
        let first = entered(&mut enter(&gate, "flood")).unwrap();
        let mut flood: Vec<_> = (0..10).map(|_| enter(&gate, "flood")).collect();
        assert!(flood.iter_mut().all(|one| poll(one).is_none()));
        // The other tenant's first run does not wait, and its second one is next.
        let quiet = entered(&mut enter(&gate, "quiet")).unwrap();
        let mut again = enter(&gate, "quiet");
        assert!(poll(&mut again).is_none());
        assert_eq!(gate.load(), (2, 11));
        drop(first);
        // The flood has none under way, so one of it may begin.
        let second = entered(&mut flood[0]).unwrap();
        assert!(poll(&mut again).is_none());
        drop(quiet);
        let quiet = entered(&mut again).unwrap();
        assert_eq!(gate.load(), (2, 9));
        drop((second, quiet));
        assert!(entered(&mut flood[1]).is_some());
    }

    #[test]
    fn turns_go_round_where_all_have_runs_under_way() {
        let gate = RunGate::new(3, 100);
        let passes = ["a", "b", "a"].map(|tenant| entered(&mut enter(&gate, tenant)).unwrap());
        let mut waiting = ["a", "a", "b"].map(|tenant| enter(&gate, tenant));
        assert!(waiting.iter_mut().all(|one| poll(one).is_none()));
        let [first, _second, third] = passes;
        drop(first);
        let _next = entered(&mut waiting[0]).unwrap();
        drop(third);
        // It is the turn of the other one, though that of `a` has waited for longer.
        assert!(poll(&mut waiting[1]).is_none());
        assert!(entered(&mut waiting[2]).is_some());
    }

    #[test]
    fn a_run_that_nobody_waits_for_takes_no_turn() {
        let gate = RunGate::new(1, 2);
        let first = entered(&mut enter(&gate, "a")).unwrap();
        let mut waiting: Vec<_> = (0..2).map(|_| enter(&gate, "a")).collect();
        assert!(waiting.iter_mut().all(|one| poll(one).is_none()));
        assert_eq!(poll(&mut enter(&gate, "a")).unwrap().err(), Some(QueueIsFull(2)));
        // Another tenant has a queue of its own.
        let theirs = entered(&mut enter(&gate, "b")).unwrap();
        let mut other = enter(&gate, "b");
        assert!(poll(&mut other).is_none());
        drop(waiting.remove(0));
        let mut last = enter(&gate, "a");
        assert!(poll(&mut last).is_none());
        drop(first);
        let second = entered(&mut waiting[0]).unwrap();
        drop((other, theirs));
        // One that is let in and does not come gives its turn up.
        drop((second, waiting));
        assert!(entered(&mut last).is_some());
        drop(last);
        assert_eq!(gate.load(), (0, 0));
    }

    #[test]
    fn a_tenant_has_no_more_runs_at_once_than_it_may() {
        let gate = RunGate::new(10, 10);
        let mut one = Box::pin(gate.enter("a", 1)) as Entering<'_>;
        let first = entered(&mut one).unwrap();
        let mut second = Box::pin(gate.enter("a", 1)) as Entering<'_>;
        assert!(poll(&mut second).is_none());
        assert!(entered(&mut enter(&gate, "b")).is_some());
        assert!(poll(&mut second).is_none());
        drop(first);
        assert!(entered(&mut second).is_some());
    }
}
