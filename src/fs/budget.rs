//! Counts how much of a mount's quotas a session has used.

use std::sync::{Arc, Mutex, PoisonError};

use super::error::FileError;

/// A resource with a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Bytes,
    Files,
    /// Entries of the host directory that an overlay has to remember.
    Marks,
}

/// The quotas of one mount in one session, and how much of them is used.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: Counter,
    files: Counter,
    marks: Counter,
}

#[derive(Debug)]
struct Counter {
    limit: u64,
    taken: Mutex<u64>,
}

impl Budget {
    pub(crate) fn new(bytes: u64, files: u64, marks: u64) -> Self {
        let counter = |limit| Counter { limit, taken: Mutex::new(0) };
        Self { bytes: counter(bytes), files: counter(files), marks: counter(marks) }
    }

    /// Makes the budget of a copy of the session. As much of it is used, by charges that the copy
    /// makes with [`Charge::copy`].
    pub(crate) fn copy(&self) -> Arc<Self> {
        let copy = |counter: &Counter| {
            let taken = *counter.taken.lock().unwrap_or_else(PoisonError::into_inner);
            Counter { limit: counter.limit, taken: Mutex::new(taken) }
        };
        let Self { bytes, files, marks } = self;
        Arc::new(Self { bytes: copy(bytes), files: copy(files), marks: copy(marks) })
    }

    /// Uses `amount` of a resource. Fails, and uses nothing, if less is left.
    pub(crate) fn spend(&self, resource: Resource, amount: u64) -> Result<(), FileError> {
        let counter = self.counter(resource);
        let mut taken = counter.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let needed = taken.saturating_add(amount);
        let limit = counter.limit;
        if needed > limit {
            return Err(match resource {
                Resource::Bytes => FileError::ByteQuota { limit, needed },
                Resource::Files => FileError::FileQuota { limit, needed },
                Resource::Marks => FileError::MarkQuota { limit, needed },
            });
        }
        *taken = needed;
        Ok(())
    }

    /// Gives `amount` of a resource back.
    pub(crate) fn refund(&self, resource: Resource, amount: u64) {
        let mut taken = self.counter(resource).taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(amount);
    }

    /// Uses `amount` of a resource until the charge is dropped.
    pub(crate) fn charge(
        self: &Arc<Self>,
        resource: Resource,
        amount: u64,
    ) -> Result<Charge, FileError> {
        self.spend(resource, amount)?;
        Ok(Charge { budget: Arc::clone(self), resource, amount })
    }

    fn counter(&self, resource: Resource) -> &Counter {
        match resource {
            Resource::Bytes => &self.bytes,
            Resource::Files => &self.files,
            Resource::Marks => &self.marks,
        }
    }
}

/// A used part of a budget, given back on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    resource: Resource,
    amount: u64,
}

impl Charge {
    /// Makes the same charge on a budget that was copied from this one's, where it counts already.
    pub(crate) fn copy(&self, budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), resource: self.resource, amount: self.amount }
    }

    /// Changes the amount, and uses or gives back the difference.
    pub(crate) fn resize(&mut self, amount: u64) -> Result<(), FileError> {
        if amount > self.amount {
            self.budget.spend(self.resource, amount - self.amount)?;
        } else {
            self.budget.refund(self.resource, self.amount - amount);
        }
        self.amount = amount;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.refund(self.resource, self.amount);
    }
}
