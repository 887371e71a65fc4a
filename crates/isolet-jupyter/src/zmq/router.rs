//! The sockets on which front ends ask: requests come in, answers go to the connection that asked,
//! or to that of the same client on another socket.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use isolet::internals::lock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::Reports;
use super::signed::{Seen, Signer};
use super::zmtp;
use crate::kernel::Arrival;
use crate::message::{Channel, Peer};

/// How many answers may wait for a connection, and how long one may keep the others waiting.
const WAITING_ANSWERS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(5);

/// The connections of one socket.
#[derive(Clone)]
pub(super) struct Router {
    channel: Channel,
    connections: Arc<Mutex<HashMap<u64, Connected>>>,
    made: Arc<AtomicU64>,
    signer: Signer,
    seen: Arc<Mutex<Seen>>,
    arrivals: mpsc::Sender<Arrival>,
    reports: Reports,
}

#[derive(Clone)]
struct Connected {
    identity: Bytes,
    answers: mpsc::Sender<Answer>,
    room: Arc<Semaphore>,
    /// Ends the connection.
    end: Arc<Notify>,
}

/// An answer on its way, with the room that it takes.
type Answer = (Vec<Bytes>, OwnedSemaphorePermit);

impl Router {
    pub(super) fn new(
        channel: Channel,
        signer: Signer,
        seen: Arc<Mutex<Seen>>,
        arrivals: mpsc::Sender<Arrival>,
        reports: Reports,
    ) -> Self {
        let (connections, made) = (Arc::default(), Arc::default());
        Self { channel, connections, made, signer, seen, arrivals, reports }
    }

    /// Serves a connection until it ends.
    pub(super) async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        identity: Bytes,
    ) -> Result<()> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (answers, mut answered) = mpsc::channel::<Answer>(WAITING_ANSWERS);
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let room = Arc::new(Semaphore::new(WAITING_ANSWERS));
        let end = Arc::new(Notify::new());
        let ending = Arc::clone(&end);
        let connected = Connected { identity: identity.clone(), answers, room, end };
        lock(&self.connections).insert(number, connected);
        let read = async {
            while let Some(frames) = zmtp::read_message(&mut reader).await? {
                let from = (number, &identity);
                let read = self.signer.read(&mut lock(&self.seen), self.channel, from, frames);
                match read {
                    Ok(request) => self.arrivals.send(Arrival::Request(request)).await?,
                    Err(reason) => self
                        .reports
                        .tell(&format!("a message on {} is ignored: {reason:#}", self.name())),
                }
            }
            anyhow::Ok(())
        };
        let write = zmtp::write_queued(&mut writer, &mut answered);
        let ended = tokio::select! {
            ended = read => ended,
            ended = write => ended,
            () = ending.notified() => Err(anyhow::anyhow!(
                "a client on {} has read no answer for {} s", self.name(), PATIENCE.as_secs()
            )),
        };
        lock(&self.connections).remove(&number);
        ended
    }

    /// Sends frames to whom has asked on this socket, or to the newest connection of the same
    /// client. Who does not read loses the connection.
    pub(super) async fn answer(&self, peer: &Peer, is_of_this_socket: bool, frames: Vec<Bytes>) {
        let Some((number, connected)) = self.connection(peer, is_of_this_socket) else {
            self.reports.tell(&format!("a message on {} finds no client", self.name()));
            return;
        };
        let send = async {
            let room = Arc::clone(&connected.room).acquire_owned().await.ok()?;
            connected.answers.send((frames, room)).await.ok()
        };
        if !matches!(timeout(PATIENCE, send).await, Ok(Some(()))) {
            lock(&self.connections).remove(&number);
            connected.end.notify_one();
        }
    }

    fn connection(&self, peer: &Peer, is_of_this_socket: bool) -> Option<(u64, Connected)> {
        let connections = lock(&self.connections);
        let number = if is_of_this_socket {
            peer.connection
        } else {
            let is_theirs =
                |other: &Connected| !peer.identity.is_empty() && other.identity == peer.identity;
            let theirs = connections.iter().filter(|(_, other)| is_theirs(other));
            theirs.map(|(number, _)| *number).max()?
        };
        Some((number, connections.get(&number)?.clone()))
    }

    /// Waits until the answers are on their way, for a while.
    pub(super) async fn finish(&self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        let rooms: Vec<_> =
            lock(&self.connections).values().map(|other| Arc::clone(&other.room)).collect();
        for room in rooms {
            let all = room.acquire_many(u32::try_from(WAITING_ANSWERS).unwrap_or(0));
            // One that is too slow is not waited for.
            let _ = timeout_at(deadline, all).await;
        }
    }

    fn name(&self) -> &'static str {
        match self.channel {
            Channel::Shell => "shell",
            Channel::Control => "control",
            Channel::Stdin => "stdin",
        }
    }
}
