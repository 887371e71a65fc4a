//! Interpreters that are ready before anybody asks for a session, and are replaced in the background.

pub(crate) mod fresh;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use self::fresh::{Fresh, Kind};
use crate::engine::Inner;
use crate::error::{Error, ErrorKind};

/// The interpreters that an engine keeps ready.
#[derive(Default)]
pub(crate) struct Pool {
    stocks: Mutex<HashMap<Kind, Stock>>,
    /// Told whenever something was put in stock, or could not be.
    changed: Notify,
    filler: Mutex<Option<mpsc::UnboundedSender<Kind>>>,
}

/// Those of one kind.
#[derive(Default)]
struct Stock {
    wanted: usize,
    /// How many are being booted.
    coming: usize,
    ready: VecDeque<Fresh>,
    /// Why the last one did not boot.
    failed: Option<Error>,
}

impl Stock {
    fn is_short(&self) -> bool {
        self.coming + self.ready.len() < self.wanted
    }
}

impl Pool {
    /// Keeps so many of a kind ready from now on.
    pub(crate) fn keep(
        &self,
        engine: &Arc<Inner>,
        kind: &Kind,
        wanted: usize,
    ) -> Result<(), Error> {
        let mut stocks = lock(&self.stocks);
        let stock = stocks.entry(kind.clone()).or_default();
        stock.wanted = wanted;
        let surplus = stock.ready.split_off(wanted.min(stock.ready.len()));
        drop(stocks);
        drop(surplus);
        self.fill(engine, kind).map_err(|error| no_thread(&error))
    }

    /// Waits until as many of a kind are ready as are to be.
    pub(crate) async fn full(&self, engine: &Arc<Inner>, kind: &Kind) -> Result<(), Error> {
        // After a failure nobody else tries again until a session is wanted.
        if let Some(stock) = lock(&self.stocks).get_mut(kind)
            && stock.coming == 0
        {
            stock.failed = None;
        }
        self.fill(engine, kind).map_err(|error| no_thread(&error))?;
        loop {
            // Made before the look, it hears of everything that happens after.
            let changed = self.changed.notified();
            match lock(&self.stocks).get_mut(kind) {
                Some(stock) => match stock.failed.take() {
                    Some(error) => return Err(error),
                    None if stock.ready.len() >= stock.wanted => return Ok(()),
                    None => {}
                },
                None => return Ok(()),
            }
            changed.await;
        }
    }

    /// Takes a ready one. `None` if there is none.
    pub(crate) fn take(&self, kind: &Kind) -> Option<Fresh> {
        let mut stocks = lock(&self.stocks);
        let ready = &mut stocks.get_mut(kind)?.ready;
        std::iter::from_fn(|| ready.pop_front())
            .find_map(|mut fresh| fresh.is_well().then_some(fresh))
    }

    /// Has those booted that are missing.
    fn fill(&self, engine: &Arc<Inner>, kind: &Kind) -> io::Result<()> {
        if !lock(&self.stocks).get(kind).is_some_and(Stock::is_short) {
            return Ok(());
        }
        let requests = {
            let mut filler = lock(&self.filler);
            match &*filler {
                Some(requests) => requests.clone(),
                None => filler.insert(start_filler(Arc::downgrade(engine))?).clone(),
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

    fn put(&self, kind: &Kind, booted: Result<Fresh, Error>) {
        let mut stocks = lock(&self.stocks);
        let Some(stock) = stocks.get_mut(kind) else { return };
        stock.coming = stock.coming.saturating_sub(1);
        let surplus = match booted {
            Ok(fresh) if stock.ready.len() < stock.wanted => {
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

/// Replaces what was taken from the pool when it is dropped.
pub(crate) struct Refill<'a> {
    pub(crate) engine: &'a Arc<Inner>,
    pub(crate) kind: &'a Kind,
}

impl Drop for Refill<'_> {
    fn drop(&mut self) {
        // Without the thread for it there is none in its place, and the next session boots its own.
        let _ = self.engine.pool().fill(self.engine, self.kind);
    }
}

fn no_thread(error: &io::Error) -> Error {
    let message = format!("the thread that keeps sessions ready cannot start: {error}");
    Error::new(ErrorKind::Start, message)
}

/// How long a boot waits, so that it is not beside the first run of the session that it makes up for.
const SOON: Duration = Duration::from_millis(10);

/// Starts the thread that boots what is asked for. It ends with the engine.
fn start_filler(engine: Weak<Inner>) -> io::Result<mpsc::UnboundedSender<Kind>> {
    let (requests, mut kinds) = mpsc::unbounded_channel::<Kind>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = async move {
        while let Some(kind) = kinds.recv().await {
            let Some(engine) = engine.upgrade() else { break };
            tokio::spawn(async move {
                tokio::time::sleep(SOON).await;
                let ready = match Fresh::boot(&engine, &kind).await {
                    Ok(mut fresh) => fresh.rehearse().await.map(|()| fresh),
                    Err(error) => Err(error),
                };
                engine.pool().put(&kind, ready);
            });
        }
    };
    let name = "isolet-pool".to_owned();
    std::thread::Builder::new().name(name).spawn(move || runtime.block_on(serve))?;
    Ok(requests)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
