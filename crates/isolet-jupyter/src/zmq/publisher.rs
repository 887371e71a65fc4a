//! What a kernel publishes, to those who have subscribed. A slow one is waited for a while, and
//! then it is one no more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use isolet::internals::lock;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout_at};

use super::zmtp;

/// How many messages may wait for a subscriber, and the bytes of all of them.
const WAITING_MESSAGES: usize = 1000;
const WAITING_BYTES: usize = 64 << 20;
/// How long a subscriber that takes none may keep the others waiting.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most subscriptions of a connection, and the most bytes of one.
const MAX_SUBSCRIPTIONS: usize = 100;
const MAX_TOPIC_BYTES: usize = 1024;

/// The subscribers.
#[derive(Clone)]
pub(super) struct Publisher {
    patience: Duration,
    subscribers: Arc<Mutex<Vec<Subscriber>>>,
    made: Arc<AtomicU64>,
}

#[derive(Clone)]
struct Subscriber {
    number: u64,
    topics: Arc<Mutex<Vec<Bytes>>>,
    queue: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
    /// Ends its connection.
    end: Arc<Notify>,
}

/// A message on its way, with the room that it takes.
type Queued = (Arc<[Bytes]>, OwnedSemaphorePermit);

impl Publisher {
    pub(super) fn new() -> Self {
        Self { patience: PATIENCE, subscribers: Arc::default(), made: Arc::default() }
    }

    /// Publishes a message, whose first frame is its topic.
    pub(super) async fn publish(&self, frames: Vec<Bytes>) {
        let frames: Arc<[Bytes]> = frames.into();
        let size: usize = frames.iter().map(Bytes::len).sum();
        let size = u32::try_from(size.min(WAITING_BYTES)).unwrap_or(u32::MAX);
        let deadline = Instant::now() + self.patience;
        let subscribers = lock(&self.subscribers).clone();
        for subscriber in subscribers.into_iter().filter(|other| other.wants(&frames[0])) {
            let send = async {
                let room = Arc::clone(&subscriber.room).acquire_many_owned(size).await.ok()?;
                subscriber.queue.send((Arc::clone(&frames), room)).await.ok()
            };
            if !matches!(timeout_at(deadline, send).await, Ok(Some(()))) {
                self.remove(subscriber.number);
            }
        }
    }

    /// Serves a connection until it ends.
    pub(super) async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (queue, mut queued) = mpsc::channel::<Queued>(WAITING_MESSAGES);
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let topics = Arc::new(Mutex::new(Vec::new()));
        let room = Arc::new(Semaphore::new(WAITING_BYTES));
        let end = Arc::new(Notify::new());
        let ending = Arc::clone(&end);
        let subscriber = Subscriber { number, topics: Arc::clone(&topics), queue, room, end };
        lock(&self.subscribers).push(subscriber);
        let read = async {
            while let Some(message) = zmtp::read_message(&mut reader).await? {
                subscribe(&topics, &message).context("a subscription cannot be taken")?;
            }
            anyhow::Ok(())
        };
        let write = zmtp::write_queued(&mut writer, &mut queued);
        let ended = tokio::select! {
            ended = read => ended,
            ended = write => ended,
            () = ending.notified() => Err(anyhow::anyhow!(
                "a subscriber has read nothing for {} s", self.patience.as_secs_f64()
            )),
        };
        self.remove(number);
        ended
    }

    /// Forgets a subscriber, and ends its connection with all that waits for it.
    fn remove(&self, number: u64) {
        lock(&self.subscribers).retain(|other| {
            if other.number == number {
                other.end.notify_one();
            }
            other.number != number
        });
    }

    /// Waits until what was published is on its way, for a while.
    pub(super) async fn finish(&self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        let subscribers = lock(&self.subscribers).clone();
        for subscriber in subscribers {
            let all = subscriber.room.acquire_many(u32::try_from(WAITING_BYTES).unwrap_or(0));
            // One that is too slow is not waited for.
            let _ = timeout_at(deadline, all).await;
        }
    }
}

impl Subscriber {
    fn wants(&self, topic: &Bytes) -> bool {
        lock(&self.topics).iter().any(|wanted| topic.starts_with(wanted))
    }
}

/// Carries out a subscription, or takes one back.
fn subscribe(topics: &Mutex<Vec<Bytes>>, message: &[Bytes]) -> Result<()> {
    let [frame] = message else { return Ok(()) };
    let Some((sign, topic)) = frame.split_first() else { return Ok(()) };
    anyhow::ensure!(
        topic.len() <= MAX_TOPIC_BYTES,
        "a topic has {} bytes, the limit is {MAX_TOPIC_BYTES}",
        topic.len()
    );
    let mut topics = lock(topics);
    match sign {
        1 => {
            anyhow::ensure!(
                topics.len() < MAX_SUBSCRIPTIONS,
                "a connection has {MAX_SUBSCRIPTIONS} subscriptions, which is the limit"
            );
            topics.push(Bytes::copy_from_slice(topic));
        }
        0 => {
            if let Some(at) = topics.iter().position(|other| other[..] == *topic) {
                topics.remove(at);
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn subscribed(publisher: &Publisher) -> tokio::io::DuplexStream {
        let (mut client, server) = tokio::io::duplex(1 << 10);
        let serving = publisher.clone();
        tokio::spawn(async move { serving.serve(server).await });
        zmtp::write_message(&mut client, &[Bytes::from_static(b"\x01a")]).await.unwrap();
        while !lock(&publisher.subscribers).iter().any(|other| other.wants(&"a".into())) {
            tokio::task::yield_now().await;
        }
        client
    }

    fn publisher() -> Publisher {
        Publisher { patience: Duration::from_millis(20), ..Publisher::new() }
    }

    fn run(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn subscribers_get_what_they_have_subscribed_to() {
        run(async {
            let publisher = publisher();
            let mut client = subscribed(&publisher).await;
            publisher.publish(vec!["b".into(), "1".into()]).await;
            publisher.publish(vec!["ab".into(), "2".into()]).await;
            let got = zmtp::read_message(&mut client).await.unwrap().unwrap();
            assert_eq!(got, ["ab", "2"]);
        });
    }

    #[test]
    fn one_that_reads_nothing_is_let_go_and_its_memory_is_bounded() {
        run(async {
            let publisher = publisher();
            let mut client = subscribed(&publisher).await;
            let stuck = lock(&publisher.subscribers)[0].room.clone();
            let large = Bytes::from(vec![b'x'; 16 << 20]);
            // Four have room. The fifth waits, and in the end the subscriber goes.
            for _ in 0..6 {
                publisher.publish(vec!["a".into(), large.clone()]).await;
                let used = WAITING_BYTES - stuck.available_permits();
                assert!(used <= WAITING_BYTES);
            }
            assert!(lock(&publisher.subscribers).is_empty());
            // Its connection ends, and what waited for it is gone.
            while let Ok(Some(_)) = zmtp::read_message(&mut client).await {}
            assert_eq!(stuck.available_permits(), WAITING_BYTES);
            client = subscribed(&publisher).await;
            publisher.publish(vec!["a".into()]).await;
            assert_eq!(zmtp::read_message(&mut client).await.unwrap().unwrap(), ["a"]);
        });
    }

    #[test]
    fn subscriptions_are_not_too_many_and_not_too_long() {
        let topics = Mutex::default();
        let take = |message: &[u8]| subscribe(&topics, &[Bytes::copy_from_slice(message)]);
        take(b"\x01a").unwrap();
        take(b"\x00a").unwrap();
        assert!(lock(&topics).is_empty());
        for _ in 0..MAX_SUBSCRIPTIONS {
            take(b"\x01").unwrap();
        }
        assert!(take(b"\x01").is_err());
        assert!(take(&[1; 2000]).is_err());
    }
}
