//! The pool: keeps interpreters ready before a session needs them, and replaces them in the
//! background. Some because the owner asks for them, and some spare ones of each kind that can be
//! copied.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Notify, mpsc};

use super::ready::{BootedInterpreter, InterpreterKind};
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
    /// Why the most recent failed boot failed.
    failed: Option<Error>,
}

impl Stock {
    fn wanted(&self) -> usize {
        self.asked.max(self.spare)
    }

    fn is_short(&self) -> bool {
        self.coming + self.ready.len() < self.wanted()
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

    /// Takes a ready interpreter, one that has rehearsed first; `None` if there is none.
    pub(crate) fn take(&self, kind: &InterpreterKind) -> Option<BootedInterpreter> {
        let mut stocks = lock(&self.stocks);
        let ready = &mut stocks.get_mut(kind)?.ready;
        let next = || {
            let best = ready.iter().position(BootedInterpreter::has_rehearsed);
            ready.remove(best.unwrap_or_default())
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

    /// Boots an interpreter for the stock. It rehearses if the owner has asked for it. A spare one
    /// does that later: where sessions are opened all the time, it would take time from others.
    async fn stock_up(&self, kind: &InterpreterKind) {
        let is_asked = lock(&self.stocks).get(kind).is_some_and(|stock| stock.asked > 0);
        let booted = match self.boot(kind).await {
            Ok(mut fresh) if is_asked => fresh.rehearse().await.map(|()| fresh),
            booted => booted,
        };
        self.put(kind, booted);
    }

    /// Has a spare interpreter rehearse.
    async fn rehearse(&self, kind: &InterpreterKind) {
        if let Some(mut fresh) = self.take_unrehearsed(kind) {
            let rehearsed = fresh.rehearse().await.map(|()| fresh);
            self.put(kind, rehearsed);
        }
    }

    /// Takes an interpreter that has not rehearsed out of the stock, for a moment.
    fn take_unrehearsed(&self, kind: &InterpreterKind) -> Option<BootedInterpreter> {
        let mut stocks = lock(&self.stocks);
        let stock = stocks.get_mut(kind)?;
        let at = stock.ready.iter().position(|ready| !ready.has_rehearsed())?;
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

/// How long a spare interpreter must have been idle before it rehearses.
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
                    idle.rehearse(&kind).await;
                }
            });
        }
    };
    let name = "isolet-pool".to_owned();
    std::thread::Builder::new().name(name).spawn(move || runtime.block_on(serve))?;
    Ok(requests)
}
