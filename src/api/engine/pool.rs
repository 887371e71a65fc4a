//! The pool: keeps interpreters ready before a session needs them, and replaces them in the
//! background. Some because the owner asks for them, and some spare ones of each kind that can be
//! copied. Where sessions start up the same way again and again, some have done that already.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::{Notify, mpsc};

use super::ready::{BootedInterpreter, InterpreterKind};
use super::startup::Startup;
use super::takers::Takers;
use crate::data::error::{Error, ErrorKind};
use crate::support::lock::lock;

/// Boots an interpreter of a kind.
pub(super) type Boot = Arc<
    dyn Fn(InterpreterKind) -> BoxFuture<'static, Result<BootedInterpreter, Error>> + Send + Sync,
>;

/// The ready interpreters of an engine.
pub(crate) struct Pool {
    /// The pool itself, for the thread that fills it.
    this: Weak<Self>,
    boot: Boot,
    stocks: Mutex<HashMap<InterpreterKind, Stock>>,
    /// Notified whenever an interpreter was added to a stock, or failed to boot.
    changed: Notify,
    filler: Mutex<Option<mpsc::UnboundedSender<InterpreterKind>>>,
}

/// The ready interpreters of one kind.
#[derive(Default)]
struct Stock {
    /// How many the owner wants ready.
    asked: usize,
    /// How many are kept ready anyway.
    spare: usize,
    /// How many are booting.
    coming: usize,
    ready: VecDeque<BootedInterpreter>,
    takers: Takers,
    /// Why the most recent failed boot failed.
    failed: Option<Error>,
    /// What the most recent session started up with, if that may be kept.
    last: Option<Startup>,
    /// Set if the one before it did so, too.
    is_repeated: bool,
}

impl Stock {
    fn wanted(&self) -> usize {
        let own = self.asked.max(self.spare);
        // The further one is that which a tenant leaves to others.
        own + usize::from(own > 0 && self.takers.are_several(Instant::now()))
    }

    fn is_short(&self) -> bool {
        self.coming + self.ready.len() < self.wanted()
    }

    /// Notes what a session starts up with.
    fn note(&mut self, startup: &Startup) {
        let kept = startup.may_come_first().then(|| startup.clone());
        self.is_repeated = kept.is_some() && self.last == kept;
        self.last = kept;
    }

    /// Returns what an interpreter is to start up with in advance. One that has not started up
    /// stays in the stock, for a session that starts up otherwise.
    fn expected(&self) -> Option<Startup> {
        let is_one_left = self.ready.iter().any(|ready| ready.begun().is_none());
        self.last.as_ref().filter(|_| self.is_repeated && is_one_left).cloned()
    }

    /// Takes out an interpreter that is to start up in advance.
    fn take_to_begin(&mut self) -> Option<(BootedInterpreter, Startup)> {
        let at = self.ready.iter().position(|ready| ready.begun().is_none())?;
        let ready = self.ready.remove(at)?;
        if let Some(expected) = self.expected() {
            self.coming += 1;
            return Some((ready, expected));
        }
        self.ready.insert(at, ready);
        None
    }

    /// Takes out the interpreters that have started up for sessions other than those that come.
    fn take_outdated(&mut self) -> VecDeque<BootedInterpreter> {
        if !self.is_repeated {
            return VecDeque::new();
        }
        let (last, ready) = (self.last.as_ref(), std::mem::take(&mut self.ready));
        let is_outdated =
            |ready: &BootedInterpreter| ready.begun().is_some_and(|_| ready.begun() != last);
        let (outdated, ready) = ready.into_iter().partition(is_outdated);
        self.ready = ready;
        outdated
    }
}

impl Pool {
    pub(super) fn new(boot: Boot) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            boot,
            stocks: Mutex::default(),
            changed: Notify::new(),
            filler: Mutex::default(),
        })
    }

    /// Boots an interpreter for immediate use, outside the stocks.
    pub(crate) async fn boot(&self, kind: &InterpreterKind) -> Result<BootedInterpreter, Error> {
        (self.boot)(kind.clone()).await
    }

    /// Keeps `asked` interpreters of a kind ready from now on.
    pub(crate) fn keep(&self, kind: &InterpreterKind, asked: usize) -> Result<(), Error> {
        let mut stocks = lock(&self.stocks);
        let stock = stocks.entry(kind.clone()).or_default();
        stock.asked = asked;
        let surplus = stock.ready.split_off(stock.wanted().min(stock.ready.len()));
        drop(stocks);
        drop(surplus);
        self.fill(kind).map_err(no_thread)
    }

    /// Keeps `spare` interpreters of a kind ready from the next session on, if the owner asks for
    /// no more.
    pub(crate) fn keep_spare(&self, kind: &InterpreterKind, spare: usize) {
        lock(&self.stocks).entry(kind.clone()).or_default().spare = spare;
    }

    /// Waits until all interpreters of a kind that the owner has asked for are ready.
    pub(crate) async fn full(&self, kind: &InterpreterKind) -> Result<(), Error> {
        // After a failed boot nothing else retries until a session is opened.
        if let Some(stock) = lock(&self.stocks).get_mut(kind)
            && stock.coming == 0
        {
            stock.failed = None;
        }
        self.fill(kind).map_err(no_thread)?;
        loop {
            // Created before the check below, so that no notification after the check is missed.
            let changed = self.changed.notified();
            match lock(&self.stocks).get_mut(kind) {
                Some(stock) => match stock.failed.take() {
                    Some(error) => return Err(error),
                    None if stock.ready.len() >= stock.asked => return Ok(()),
                    None => {}
                },
                None => return Ok(()),
            }
            changed.await;
        }
    }

    /// Takes a ready interpreter; `None` if there is none. First one that has started up as the
    /// session does, then one that has rehearsed. One that has started up otherwise is not taken,
    /// nor the last one that has not, if the tenant has to leave one to others.
    pub(crate) fn take(
        &self,
        kind: &InterpreterKind,
        tenant: &Arc<str>,
        startup: Option<&Startup>,
    ) -> Option<BootedInterpreter> {
        let mut stocks = lock(&self.stocks);
        let stock = stocks.get_mut(kind)?;
        if let Some(startup) = startup {
            stock.note(startup);
        }
        let leaves_one = stock.takers.note(tenant, Instant::now());
        let ready = &mut stock.ready;
        let next = || {
            let unbegun = ready.iter().filter(|ready| ready.begun().is_none()).count();
            let is_left = leaves_one && unbegun < 2;
            let fitness = |ready: &BootedInterpreter| match ready.begun() {
                begun @ Some(_) => (begun == startup).then_some(2),
                None => (!is_left).then(|| u8::from(ready.has_rehearsed())),
            };
            let all = ready.iter().enumerate();
            let fitting = all.filter_map(|(at, one)| Some((fitness(one)?, Reverse(at))));
            let (_, Reverse(at)) = fitting.max()?;
            ready.remove(at)
        };
        std::iter::from_fn(next).find_map(|mut fresh| fresh.is_well().then_some(fresh))
    }

    /// Requests a boot for each interpreter that is missing.
    fn fill(&self, kind: &InterpreterKind) -> io::Result<()> {
        if !lock(&self.stocks).get(kind).is_some_and(Stock::is_short) {
            return Ok(());
        }
        let requests = {
            let mut filler = lock(&self.filler);
            match &*filler {
                Some(requests) => requests.clone(),
                None => filler.insert(start_filler(Weak::clone(&self.this))?).clone(),
            }
        };
        if let Some(stock) = lock(&self.stocks).get_mut(kind) {
            while stock.is_short() {
                requests.send(kind.clone()).map_err(|_| io::ErrorKind::BrokenPipe)?;
                stock.coming += 1;
            }
        }
        Ok(())
    }

    /// Boots an interpreter for the stock. It rehearses and starts up if the owner has asked for
    /// it. A spare one does that later: where sessions are opened all the time, it would take time
    /// from others.
    async fn stock_up(&self, kind: &InterpreterKind) {
        let is_asked = lock(&self.stocks).get(kind).is_some_and(|stock| stock.asked > 0);
        let booted = match self.boot(kind).await {
            Ok(fresh) if is_asked => self.prepared(kind, fresh).await,
            booted => booted,
        };
        self.put(kind, booted);
    }

    /// Makes an interpreter ready that is not in the stock yet.
    async fn prepared(
        &self,
        kind: &InterpreterKind,
        mut fresh: BootedInterpreter,
    ) -> Result<BootedInterpreter, Error> {
        fresh.rehearse().await?;
        let expected = lock(&self.stocks).get(kind).and_then(Stock::expected);
        if let Some(startup) = expected {
            fresh.begin(startup).await?;
        }
        Ok(fresh)
    }

    /// Has a spare interpreter rehearse, and one start up.
    async fn improve(&self, kind: &InterpreterKind) {
        if let Some(mut fresh) = self.take_unrehearsed(kind) {
            let rehearsed = fresh.rehearse().await.map(|()| fresh);
            self.put(kind, rehearsed);
        }
        let outdated = lock(&self.stocks).get_mut(kind).map(Stock::take_outdated);
        drop(outdated);
        let to_begin = lock(&self.stocks).get_mut(kind).and_then(Stock::take_to_begin);
        if let Some((mut fresh, startup)) = to_begin {
            let begun = fresh.begin(startup).await.map(|()| fresh);
            self.put(kind, begun);
        }
    }

    /// Takes an interpreter that has not rehearsed out of the stock, for a moment. One that has
    /// started up would lose that.
    fn take_unrehearsed(&self, kind: &InterpreterKind) -> Option<BootedInterpreter> {
        let mut stocks = lock(&self.stocks);
        let stock = stocks.get_mut(kind)?;
        let may_rehearse =
            |ready: &BootedInterpreter| !ready.has_rehearsed() && ready.begun().is_none();
        let at = stock.ready.iter().position(may_rehearse)?;
        stock.coming += 1;
        stock.ready.remove(at)
    }

    fn put(&self, kind: &InterpreterKind, booted: Result<BootedInterpreter, Error>) {
        let mut stocks = lock(&self.stocks);
        let Some(stock) = stocks.get_mut(kind) else { return };
        stock.coming = stock.coming.saturating_sub(1);
        let surplus = match booted {
            Ok(fresh) if stock.ready.len() < stock.wanted() => {
                stock.ready.push_back(fresh);
                None
            }
            Ok(fresh) => Some(fresh),
            Err(error) => {
                stock.failed = Some(error);
                stock.last = None;
                None
            }
        };
        drop(stocks);
        drop(surplus);
        self.changed.notify_waiters();
    }
}

/// Refills the pool's stock of a kind on drop.
pub(crate) struct Refill<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) kind: &'a InterpreterKind,
}

impl Drop for Refill<'_> {
    fn drop(&mut self) {
        // If the filler thread cannot start, the interpreter is not replaced, and the next session
        // boots its own.
        let _ = self.pool.fill(self.kind);
    }
}

fn no_thread(error: io::Error) -> Error {
    let message = format!("the thread that keeps sessions ready cannot start: {error}");
    Error::new(ErrorKind::Start, message).with_source(error)
}

/// How long a boot is delayed, so that it does not compete with the first run of the session whose
/// interpreter it replaces.
const SOON: Duration = Duration::from_millis(10);

/// How long a spare interpreter must have been idle before it rehearses or starts up.
const IDLE: Duration = Duration::from_millis(20);

/// Starts the thread that boots the requested interpreters. It ends with the pool.
fn start_filler(pool: Weak<Pool>) -> io::Result<mpsc::UnboundedSender<InterpreterKind>> {
    let (requests, mut kinds) = mpsc::unbounded_channel::<InterpreterKind>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = async move {
        while let Some(kind) = kinds.recv().await {
            let pool = Weak::clone(&pool);
            tokio::spawn(async move {
                tokio::time::sleep(SOON).await;
                let Some(stocked) = pool.upgrade() else { return };
                stocked.stock_up(&kind).await;
                drop(stocked);
                tokio::time::sleep(IDLE).await;
                if let Some(idle) = pool.upgrade() {
                    idle.improve(&kind).await;
                    // Without a replacement, the next session boots its own interpreter.
                    let _ = idle.fill(&kind);
                }
            });
        }
    };
    let name = "isolet-pool".to_owned();
    std::thread::Builder::new().name(name).spawn(move || runtime.block_on(serve))?;
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::data::isolation::{Confinement, IsolationReport};
    use crate::data::value::{Value, marshal};
    use crate::protocol::{Control, Link, Message, Reply, StartCommand};

    struct Alive;

    impl Control for Alive {
        fn interrupt(&self) {}
        fn clear_interrupt(&self) {}
        fn interrupted(&self) -> bool {
            false
        }
        fn terminate(&self) {}
    }

    /// Makes an interpreter that answers each command with the status `status`.
    fn interpreter(status: &'static str) -> BootedInterpreter {
        let (sender, replies) = mpsc::unbounded_channel();
        let has_begun = AtomicBool::new(false);
        let messages = Arc::new(move |message: Message| {
            let Message::Command(frame) = message else { panic!("no command") };
            if frame.windows(8).any(|word| word == b"rehearse") {
                assert!(!has_begun.load(Ordering::SeqCst), "it loses what it has started up with");
            } else {
                has_begun.store(true, Ordering::SeqCst);
            }
            let mut report = Vec::new();
            marshal::encode(&Value::dict([("status", status)]), &mut report);
            sender.send(Reply::Done { memory_bytes: 0, report }).unwrap();
        });
        let control = Arc::new(Alive);
        let link = Link { messages, replies, control, source: None, forker: None };
        BootedInterpreter::new(link, IsolationReport::thread(), Arc::default(), true)
    }

    fn pool(status: &'static str) -> Arc<Pool> {
        Pool::new(Arc::new(move |_| Box::pin(async move { Ok(interpreter(status)) })))
    }

    fn kind() -> InterpreterKind {
        let confinement = Confinement::default();
        InterpreterKind { confinement, memory_bytes: 1, max_report_bytes: 1, max_copies: None }
    }

    fn tenant() -> Arc<str> {
        Arc::from("")
    }

    /// What a session starts up with that has an environment variable of this value.
    fn startup(value: &str) -> Startup {
        let env = vec![("NAME".to_owned(), value.to_owned())];
        Startup::new(StartCommand { env, ..StartCommand::default() }, true)
    }

    /// Takes an interpreter, and returns whether it had started up. Then the pool is filled again,
    /// as its thread would do it.
    async fn taken(pool: &Pool, startup: &Startup) -> Option<bool> {
        let taken = pool.take(&kind(), &tenant(), Some(startup)).map(|ready| match ready.begun() {
            Some(begun) => {
                assert!(begun == startup, "it started up otherwise");
                true
            }
            None => false,
        });
        while lock(&pool.stocks)[&kind()].is_short() {
            lock(&pool.stocks).get_mut(&kind()).unwrap().coming += 1;
            pool.stock_up(&kind()).await;
            pool.improve(&kind()).await;
        }
        taken
    }

    /// Returns a pool that keeps so many interpreters, which are there.
    async fn full(asked: usize, spare: usize, status: &'static str) -> Arc<Pool> {
        let pool = pool(status);
        let stock = Stock { asked, spare, ..Stock::default() };
        lock(&pool.stocks).insert(kind(), stock);
        assert_eq!(taken(&pool, &startup("first")).await, None);
        pool
    }

    #[tokio::test]
    async fn what_two_sessions_have_started_up_with_an_interpreter_starts_up_with_in_advance() {
        for (asked, spare) in [(0, 2), (2, 0), (3, 2)] {
            let pool = full(asked, spare, "completed").await;
            let (a, b) = (startup("a"), startup("b"));
            assert_eq!(taken(&pool, &a).await, Some(false));
            assert_eq!(taken(&pool, &a).await, Some(false));
            assert_eq!(taken(&pool, &a).await, Some(true));
            assert_eq!(taken(&pool, &a).await, Some(true));
            assert_eq!(taken(&pool, &b).await, Some(false), "one is left for others");
            assert_eq!(taken(&pool, &a).await, Some(true), "it is still there");
            assert_eq!(taken(&pool, &b).await, Some(false));
            assert_eq!(taken(&pool, &b).await, Some(false));
            assert_eq!(taken(&pool, &b).await, Some(true), "it takes the place of the other");
            assert_eq!(taken(&pool, &a).await, Some(false));
            assert_eq!(lock(&pool.stocks)[&kind()].ready.len(), asked.max(spare));
        }
    }

    #[tokio::test]
    async fn an_interpreter_that_has_started_up_does_not_rehearse() {
        let pool = full(0, 2, "completed").await;
        let startup = startup("a");
        // As when two sessions are opened at once: nobody has rehearsed when one starts up.
        for _ in 0..2 {
            assert!(pool.take(&kind(), &tenant(), Some(&startup)).is_some());
        }
        for _ in 0..2 {
            lock(&pool.stocks).get_mut(&kind()).unwrap().coming += 1;
            pool.stock_up(&kind()).await;
        }
        for _ in 0..3 {
            pool.improve(&kind()).await;
        }
        assert_eq!(taken(&pool, &startup).await, Some(true));
    }

    #[tokio::test]
    async fn a_restored_session_takes_no_interpreter_that_has_started_up() {
        let pool = full(0, 2, "completed").await;
        for _ in 0..2 {
            taken(&pool, &startup("a")).await;
        }
        assert!(pool.take(&kind(), &tenant(), None).unwrap().begun().is_none());
        assert!(pool.take(&kind(), &tenant(), None).is_none());
        assert!(pool.take(&kind(), &tenant(), Some(&startup("a"))).unwrap().begun().is_some());
    }

    #[tokio::test]
    async fn nothing_starts_up_in_advance_with_what_is_one_sessions_or_long_or_of_no_use() {
        let plain = StartCommand::default;
        let long = vec![("NAME".to_owned(), "x".repeat(2 << 20))];
        let of_one = Startup::new(plain(), false);
        let too_long = Startup::new(StartCommand { env: long, ..plain() }, true);
        for startup in [of_one, too_long] {
            let pool = full(3, 0, "completed").await;
            for _ in 0..4 {
                assert_eq!(taken(&pool, &startup).await, Some(false));
            }
        }
        // With a single one, none is left for others.
        let pool = full(1, 1, "completed").await;
        for _ in 0..4 {
            assert_eq!(taken(&pool, &startup("a")).await, Some(false));
        }
    }

    #[tokio::test]
    async fn the_last_one_is_left_to_a_tenant_that_takes_less_than_its_share() {
        let pool = full(0, 2, "completed").await;
        let ready = || lock(&pool.stocks)[&kind()].ready.len();
        let takes = |name: &str| pool.take(&kind(), &Arc::from(name), None).is_some();
        let startup = startup("fill");
        let fill = || taken(&pool, &startup);
        // The stock is filled on behalf of the tenant without a name.
        assert!(takes("") && takes("") && !takes(""), "it is alone");
        assert!(!takes("b"), "from here on they are two");
        assert_eq!(fill().await, None);
        assert_eq!(ready(), 3, "one more than one tenant has");
        assert!(takes("") && takes("") && !takes("") && !takes(""));
        assert!(takes("b"), "the last one was left to it, which takes less");
        assert_eq!(ready(), 0);
    }

    #[tokio::test]
    async fn an_interpreter_that_cannot_start_up_is_dropped_and_no_other_one_tries() {
        let pool = full(0, 2, "nonsense").await;
        for _ in 0..2 {
            assert_eq!(taken(&pool, &startup("a")).await, Some(false));
        }
        assert!(lock(&pool.stocks)[&kind()].last.is_none());
        assert_eq!(taken(&pool, &startup("a")).await, Some(false));
    }
}
