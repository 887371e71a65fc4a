//! The transport that Jupyter's programs use: five sockets of `ZeroMQ`, whose addresses are in a
//! connection file.
//!
//! The sockets have a thread of their own, so that a kernel that is busy still has a heartbeat.

mod connection;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod parent;
mod publisher;
mod router;
mod signed;
mod zmtp;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use self::connection::Connection;
use self::connection::{Listener, Listeners, Stream};
use self::publisher::Publisher;
use self::router::Router;
use self::signed::{Seen, Signer};
use self::zmtp::Kind;
use crate::kernel::{Arrival, Ends};
use crate::message::{Channel, To};

/// The most connections of a socket, and how long one may take for its greeting.
const MAX_CONNECTIONS: usize = 64;
const GREETING: Duration = Duration::from_secs(10);
/// How long a socket rests that can accept nothing.
const REST: Duration = Duration::from_millis(100);
/// How many messages that were ignored are told of.
const MAX_REPORTS: u32 = 20;

/// Sockets that are served, until the kernel has ended.
pub struct Served {
    thread: JoinHandle<()>,
}

/// What serves a connection of a client, who has given itself this name.
type Serve = Arc<dyn Fn(Box<dyn Stream>, Bytes) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// Tells the one who runs the kernel what was ignored, a few times.
#[derive(Clone)]
struct Reports {
    tell: Arc<dyn Fn(&str) + Send + Sync>,
    told: Arc<AtomicU32>,
}

/// Serves a kernel on the sockets of its connection file, on a thread. When the front end is gone,
/// with the file or the process that has started the kernel, nothing arrives any more. `report` is
/// told of that, and of what was ignored.
///
/// # Errors
///
/// If a socket cannot be bound.
pub fn serve(
    path: PathBuf,
    connection: Connection,
    ends: Ends,
    report: impl Fn(&str) + Send + Sync + 'static,
) -> Result<Served> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the event loop of the sockets cannot start")?;
    let listeners = runtime.block_on(connection.listen())?;
    let reports = Reports { tell: Arc::new(report), told: Arc::default() };
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                () = transport(&connection, listeners, ends, &reports) => {}
                reason = parent::gone(&path) => (reports.tell)(&reason),
            }
        });
        connection.remove_files();
    };
    let thread = std::thread::Builder::new().name("isolet-sockets".to_owned()).spawn(run);
    Ok(Served { thread: thread.context("the thread of the sockets cannot start")? })
}

impl Served {
    /// Waits until all is sent that the kernel had to say, and the sockets are closed.
    pub fn finish(self) {
        // What a panic there said was printed.
        let _ = self.thread.join();
    }
}

impl Reports {
    fn tell(&self, text: &str) {
        match self.told.fetch_add(1, Ordering::Relaxed) {
            told if told + 1 < MAX_REPORTS => (self.tell)(text),
            told if told + 1 == MAX_REPORTS => {
                (self.tell)(&format!("{text}; no more of these are told"));
            }
            _ => {}
        }
    }
}

/// Passes messages between the sockets and the kernel, until that has ended.
async fn transport(connection: &Connection, listeners: Listeners, ends: Ends, reports: &Reports) {
    let Ends { arrivals, mut messages } = ends;
    let signer = Signer::new(connection.key());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let router = |channel| {
        let (signer, seen) = (signer.clone(), Arc::clone(&seen));
        Router::new(channel, signer, seen, arrivals.clone(), reports.clone())
    };
    let (shell, control, stdin) =
        (router(Channel::Shell), router(Channel::Control), router(Channel::Stdin));
    let publisher = Publisher::new();
    let mut sockets = JoinSet::new();
    for (listener, router) in [
        (listeners.shell, shell.clone()),
        (listeners.control, control.clone()),
        (listeners.stdin, stdin.clone()),
    ] {
        let serve: Serve = Arc::new(move |stream, identity| {
            let router = router.clone();
            Box::pin(async move { router.serve(stream, identity).await })
        });
        sockets.spawn(accept(listener, Kind::Router, reports.clone(), serve));
    }
    let subscribed = publisher.clone();
    let serve: Serve = Arc::new(move |stream, _| {
        let publisher = subscribed.clone();
        Box::pin(async move { publisher.serve(stream).await })
    });
    sockets.spawn(accept(listeners.published, Kind::Publisher, reports.clone(), serve));
    let serve: Serve = Arc::new(|stream, _| Box::pin(beat(stream)));
    sockets.spawn(accept(listeners.heartbeat, Kind::Replier, reports.clone(), serve));
    sockets.spawn(interrupts(arrivals.clone()));
    drop(arrivals);
    while let Some(message) = messages.recv().await {
        let to = message.to.clone();
        match to {
            To::Everybody => {
                let topic = Bytes::from_static(message.kind.name().as_bytes());
                publisher.publish(signer.write(message, vec![topic])).await;
            }
            To::Peer(channel, peer) => {
                // A question to the user goes to another socket than the one of its request.
                let (router, is_of_this_socket) = match channel {
                    Channel::Shell => (&shell, true),
                    Channel::Control => (&control, true),
                    Channel::Stdin => (&stdin, false),
                };
                let way = if is_of_this_socket { peer.route.clone() } else { Vec::new() };
                router.answer(&peer, is_of_this_socket, signer.write(message, way)).await;
            }
        }
    }
    publisher.finish().await;
    shell.finish().await;
    control.finish().await;
}

/// Accepts the connections of a socket, and serves each on a task.
async fn accept(listener: Listener, kind: Kind, reports: Reports, serve: Serve) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut tasks = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        while tasks.try_join_next().is_some() {}
        let mut stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                reports.tell(&format!("a connection cannot be accepted: {error}"));
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let (reports, serve) = (reports.clone(), Arc::clone(&serve));
        tasks.spawn(async move {
            let greeted = timeout(GREETING, zmtp::greet(&mut stream, kind)).await;
            let served = match greeted.context("no greeting comes").flatten() {
                Ok(identity) => serve(stream, identity).await,
                Err(error) => Err(error),
            };
            // A client that has just gone is no news.
            if let Err(error) = served
                && !error.is::<std::io::Error>()
            {
                reports.tell(&format!("a connection is closed: {error:#}"));
            }
            drop(place);
        });
    }
}

/// Sends back what comes: the kernel's process lives.
async fn beat(stream: Box<dyn Stream>) -> Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    while let Some(message) = zmtp::read_message(&mut reader).await? {
        zmtp::write_message(&mut writer, &message).await?;
    }
    Ok(())
}

/// Has SIGINT interrupt the cell that runs, as other kernels have it.
async fn interrupts(arrivals: mpsc::Sender<Arrival>) {
    let Ok(mut signals) = signal(SignalKind::interrupt()) else { return };
    while signals.recv().await.is_some() {
        if arrivals.send(Arrival::Interrupt).await.is_err() {
            return;
        }
    }
}
