//! Sessions by handle, with their owners and idle times, and the reasons why some are gone.
//!
//! A handle is a secret of 128 bits. It works only for its owner, and is never reused, except that
//! an owner may restore a session under its old handle.
//!
//! The table only selects sessions to be ended; its caller ends them.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isolet::internals::lock;

/// The number of ended sessions whose reasons are remembered.
const REMEMBERED: usize = 1000;

/// The sessions of all owners. `T` is the session type.
pub struct Table<T> {
    /// The time after which an unused session is idle.
    idle: Duration,
    /// The maximum number of sessions.
    most: usize,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    entries: HashMap<String, Entry<T>>,
    /// The number of sessions being started.
    starting: usize,
    gone: VecDeque<(String, String, Reason)>,
}

struct Entry<T> {
    owner: String,
    session: Arc<T>,
    /// The number of leases.
    users: usize,
    last_used: Instant,
}

/// Why a session is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its owner closed it.
    Closed,
    /// It was unused for this time.
    Idle(Duration),
    /// It made room for a newer session; the maximum number of sessions.
    MadeRoom(usize),
    /// Its lifetime was over.
    Expired,
    /// It ended for this reason.
    Ended(String),
    /// The process ends, and another one goes on with it.
    Left,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it was closed"),
            Self::Expired => f.write_str("its time was over"),
            Self::Idle(time) => write!(f, "nobody used it for {}", Time(*time)),
            Self::MadeRoom(most) => write!(
                f,
                "it made room for a newer one, because at most {most} are kept and it was the one \
                 not used for longest"
            ),
            Self::Ended(reason) => f.write_str(reason),
            Self::Left => f.write_str("the process ended, and the next one goes on with it"),
        }
    }
}

struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if seconds >= 60 && seconds.is_multiple_of(60) {
            write!(f, "{} min", seconds / 60)
        } else {
            write!(f, "{} s", self.0.as_secs_f64())
        }
    }
}

/// A session in use, which is not ended as idle.
pub struct Lease<T> {
    table: Arc<Table<T>>,
    owner: String,
    handle: String,
    session: Arc<T>,
}

impl<T> Lease<T> {
    pub fn handle(&self) -> &str {
        &self.handle
    }

    pub fn session(&self) -> &Arc<T> {
        &self.session
    }

    /// Returns the owner of the session.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Removes the session, unless there is another lease. Remembers the reason, if there is one.
    pub fn give_up(self, reason: Option<Reason>) -> Option<Arc<T>> {
        let mut inner = lock(&self.table.inner);
        inner.entries.get(&self.handle).filter(|entry| entry.users == 1)?;
        inner.remove(&self.handle, reason)
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        if let Some(entry) = lock(&self.table.inner).entries.get_mut(&self.handle) {
            entry.users -= 1;
            entry.last_used = Instant::now();
        }
    }
}

/// Reserved room for a session that is starting.
pub struct Room<T> {
    table: Arc<Table<T>>,
}

impl<T> Room<T> {
    /// Adds the session under a new handle, with a lease.
    pub fn fill(self, owner: &str, session: T) -> Result<Lease<T>, getrandom::Error> {
        let handle = new_handle()?;
        Ok(self.fill_again(owner, handle, session))
    }

    /// Adds a session under this handle, with a lease.
    pub fn fill_again(self, owner: &str, handle: String, session: T) -> Lease<T> {
        let session = Arc::new(session);
        let entry = Entry {
            owner: owner.to_owned(),
            session: Arc::clone(&session),
            users: 1,
            last_used: Instant::now(),
        };
        let table = Arc::clone(&self.table);
        lock(&table.inner).entries.insert(handle.clone(), entry);
        Lease { table, owner: owner.to_owned(), handle, session }
    }
}

impl<T> Drop for Room<T> {
    fn drop(&mut self) {
        lock(&self.table.inner).starting -= 1;
    }
}

impl<T> Table<T> {
    pub fn new(idle: Duration, most: usize) -> Arc<Self> {
        let inner = Inner { entries: HashMap::new(), starting: 0, gone: VecDeque::new() };
        Arc::new(Self { idle, most, inner: Mutex::new(inner) })
    }

    /// Reserves room for a new session. If the table is full, fails with the session to end first;
    /// with `None` if all are in use.
    pub fn make_room(self: &Arc<Self>) -> Result<Room<T>, Option<Lease<T>>> {
        let mut inner = lock(&self.inner);
        if inner.entries.len() + inner.starting < self.most {
            inner.starting += 1;
            return Ok(Room { table: Arc::clone(self) });
        }
        let unused = inner.entries.iter_mut().filter(|(_, entry)| entry.users == 0);
        let oldest = unused.min_by_key(|(_, entry)| entry.last_used);
        Err(oldest.map(|(handle, entry)| self.used(handle, entry)))
    }

    /// Returns the session of a handle. If it is gone, fails with the reason, if it is known and
    /// the owner is right.
    pub fn get(self: &Arc<Self>, owner: &str, handle: &str) -> Result<Lease<T>, Option<Reason>> {
        let mut inner = lock(&self.inner);
        match inner.entries.get_mut(handle) {
            Some(entry) if entry.owner == owner => Ok(self.used(handle, entry)),
            _ => {
                let mut gone = inner.gone.iter();
                let gone = gone.find(|(its, of, _)| its == handle && of == owner);
                Err(gone.map(|(_, _, reason)| reason.clone()))
            }
        }
    }

    /// Creates a lease of an entry.
    fn used(self: &Arc<Self>, handle: &str, entry: &mut Entry<T>) -> Lease<T> {
        entry.users += 1;
        let (session, owner) = (Arc::clone(&entry.session), entry.owner.clone());
        Lease { table: Arc::clone(self), owner, handle: handle.to_owned(), session }
    }

    /// Removes an owner's session.
    pub fn remove(&self, owner: &str, handle: &str, reason: Reason) -> Option<Arc<T>> {
        let mut inner = lock(&self.inner);
        inner.entries.get(handle).filter(|entry| entry.owner == owner)?;
        inner.remove(handle, Some(reason))
    }

    /// Returns the idle sessions, for the caller to end.
    pub fn idle(self: &Arc<Self>) -> Vec<Lease<T>> {
        let now = Instant::now();
        self.entries(|entry| {
            entry.users == 0 && now.saturating_duration_since(entry.last_used) >= self.idle
        })
    }

    /// Returns all sessions, including those in use.
    pub fn all(self: &Arc<Self>) -> Vec<Lease<T>> {
        self.entries(|_| true)
    }

    /// Returns the sessions that match, including those in use.
    pub fn those(self: &Arc<Self>, are_wanted: impl Fn(&T) -> bool) -> Vec<Lease<T>> {
        self.entries(|entry| are_wanted(&entry.session))
    }

    /// Returns `true` if the session is in the table.
    pub fn has(&self, handle: &str) -> bool {
        lock(&self.inner).entries.contains_key(handle)
    }

    /// Returns the owner of a current or remembered session.
    pub fn owner(&self, handle: &str) -> Option<String> {
        let inner = lock(&self.inner);
        let owner = inner.entries.get(handle).map(|entry| entry.owner.clone());
        let gone = || inner.gone.iter().find(|(its, ..)| its == handle);
        owner.or_else(|| gone().map(|(_, owner, _)| owner.clone()))
    }

    fn entries(self: &Arc<Self>, are_wanted: impl Fn(&Entry<T>) -> bool) -> Vec<Lease<T>> {
        let mut inner = lock(&self.inner);
        let wanted = inner.entries.iter_mut().filter(|(_, entry)| are_wanted(entry));
        wanted.map(|(handle, entry)| self.used(handle, entry)).collect()
    }

    /// Returns an owner's sessions by handle.
    pub fn of(&self, owner: &str) -> Vec<(String, Arc<T>)> {
        let inner = lock(&self.inner);
        let mine = inner.entries.iter().filter(|(_, entry)| entry.owner == owner);
        mine.map(|(handle, entry)| (handle.clone(), Arc::clone(&entry.session))).collect()
    }
}

impl<T> Inner<T> {
    fn remove(&mut self, handle: &str, reason: Option<Reason>) -> Option<Arc<T>> {
        let entry = self.entries.remove(handle)?;
        if let Some(reason) = reason {
            if self.gone.len() == REMEMBERED {
                self.gone.pop_front();
            }
            self.gone.push_back((handle.to_owned(), entry.owner, reason));
        }
        Some(entry.session)
    }
}

fn new_handle() -> Result<String, getrandom::Error> {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random)?;
    let mut handle = String::from("s_");
    for byte in random {
        // Writing to a string does not fail.
        let _ = write!(handle, "{byte:02x}");
    }
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    fn opened(table: &Arc<Table<u8>>, owner: &str, session: u8) -> String {
        let room = table.make_room().ok().unwrap();
        room.fill(owner, session).unwrap().handle().to_owned()
    }

    fn reason(got: Result<Lease<u8>, Option<Reason>>) -> Option<Reason> {
        got.err().unwrap()
    }

    fn oldest(table: &Arc<Table<u8>>) -> Option<Lease<u8>> {
        table.make_room().err().unwrap()
    }

    #[test]
    fn a_handle_works_for_its_owner_only() {
        let table = Table::new(LONG, 2);
        let handle = opened(&table, "a", 1);
        assert_eq!(**table.get("a", &handle).ok().unwrap().session(), 1);
        assert_eq!(reason(table.get("b", &handle)), None);
        assert!(table.remove("b", &handle, Reason::Closed).is_none());
        assert_eq!(table.remove("a", &handle, Reason::Closed).as_deref(), Some(&1));
        assert_eq!(reason(table.get("a", &handle)), Some(Reason::Closed));
        // Another owner does not even learn that it was there.
        assert_eq!(reason(table.get("b", &handle)), None);
        assert!(handle.len() == 34 && handle != opened(&table, "a", 1));
    }

    #[test]
    fn the_session_not_used_for_longest_makes_room_unless_it_is_in_use() {
        let table = Table::new(LONG, 2);
        let first = opened(&table, "a", 1);
        let second = opened(&table, "a", 2);
        drop(table.get("a", &first));
        let given_up = oldest(&table).unwrap();
        assert_eq!((given_up.handle(), given_up.owner()), (&*second, "a"));
        assert_eq!(given_up.give_up(Some(Reason::MadeRoom(2))).as_deref(), Some(&2));
        assert_eq!(reason(table.get("a", &second)), Some(Reason::MadeRoom(2)));
        let third = opened(&table, "b", 3);
        let used = [table.get("a", &first).ok().unwrap(), table.get("b", &third).ok().unwrap()];
        assert!(oldest(&table).is_none());
        drop(used);
        assert!(oldest(&table).unwrap().give_up(None).is_some());
        // The other one, too, while the first is still starting.
        let room = table.make_room().ok().unwrap();
        assert!(oldest(&table).unwrap().give_up(None).is_some());
        let other = table.make_room().ok().unwrap();
        assert!(oldest(&table).is_none());
        drop((room, other));
    }

    #[test]
    fn a_session_that_nobody_uses_is_given_up_and_one_in_use_is_not() {
        let table = Table::new(Duration::ZERO, 5);
        let used = table.make_room().ok().unwrap().fill("a", 1).unwrap();
        assert!(table.idle().is_empty() && table.all().len() == 1);
        let handle = used.handle().to_owned();
        drop(used);
        // Somebody wants it again before it is given up.
        let idle = table.idle().remove(0);
        let again = table.get("a", &handle).ok().unwrap();
        assert!(idle.give_up(Some(Reason::Idle(Duration::ZERO))).is_none());
        drop(again);
        assert!(table.idle().remove(0).give_up(Some(Reason::Idle(Duration::ZERO))).is_some());
        assert_eq!(reason(table.get("a", &handle)), Some(Reason::Idle(Duration::ZERO)));
        assert!(table.of("a").is_empty());
        let reason = Reason::Idle(Duration::from_mins(30));
        assert_eq!(reason.to_string(), "nobody used it for 30 min");
    }

    #[test]
    fn a_session_that_was_kept_elsewhere_has_its_handle_again() {
        let table = Table::new(LONG, 5);
        let handle = opened(&table, "a", 1);
        assert!(table.idle().is_empty());
        assert!(table.all().remove(0).give_up(None).is_some());
        assert_eq!(reason(table.get("a", &handle)), None);
        drop(table.make_room().ok().unwrap().fill_again("a", handle.clone(), 2));
        assert_eq!(**table.get("a", &handle).ok().unwrap().session(), 2);
    }

    #[test]
    fn old_reasons_are_forgotten() {
        let table = Table::new(LONG, 5);
        let first = opened(&table, "a", 0);
        table.remove("a", &first, Reason::Closed);
        for _ in 0..REMEMBERED {
            let handle = opened(&table, "a", 0);
            table.remove("a", &handle, Reason::Closed);
        }
        assert_eq!(reason(table.get("a", &first)), None);
    }
}
