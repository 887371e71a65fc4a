//! Streams of server-sent events with a limit on the size of an event.

use std::error::Error as StdError;
use std::fmt;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use sse_stream::{Error as SseError, Sse, SseStream};

use super::answers::{self, Reader, RequestKind};

/// The names of events that are messages.
const MESSAGES: [&str; 2] = ["", "message"];

/// A request that waits for its answer, which a stream brings.
pub(super) struct Pending {
    pub(super) reader: Reader,
    pub(super) id: RequestId,
    pub(super) asked: RequestKind,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.reader.forget(&self.id);
    }
}

/// Parses the body that answers a request. An event that cannot be read fails the request.
pub(super) fn answers<S, E>(body: S, pending: Pending) -> BoxStream<'static, Result<Sse, SseError>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: StdError + Send + Sync + 'static,
{
    let max_bytes = pending.reader.max_bytes(pending.asked);
    let read =
        events(body, max_bytes).scan((pending, false), move |(pending, has_failed), event| {
            let Pending { reader, id, asked } = pending;
            let read = match event {
                _ if *has_failed => None,
                Ok(event) => Some(Ok(with_message(event, |data, is_message| {
                    reader.event(data, is_message, id, *asked)
                }))),
                // The answer may continue in another stream.
                Err(SseError::Body(error)) if !is_too_long(&*error) => {
                    Some(Err(SseError::Body(error)))
                }
                Err(error) => {
                    *has_failed = true;
                    let reason = match error {
                        SseError::Body(_) => {
                            answers::too_long(max_bytes.saturating_add(1), max_bytes)
                        }
                        error => format!("its events cannot be read: {error}"),
                    };
                    let data = text(&answers::failure(id.clone(), &reason));
                    Some(Ok(Sse { data, ..Sse::default() }))
                }
            };
            std::future::ready(read)
        });
    read.boxed()
}

/// Parses a body that answers no request.
pub(super) fn messages<S, E>(body: S, reader: Reader) -> BoxStream<'static, Result<Sse, SseError>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: StdError + Send + Sync + 'static,
{
    let events = events(body, reader.max_bytes(RequestKind::Page));
    let read = events.map(move |event| {
        Ok(with_message(event?, |data, is_message| reader.stray_event(data, is_message)))
    });
    read.boxed()
}

/// Returns an event that is a message or empty, and removes its name.
fn with_message(
    mut event: Sse,
    read: impl FnOnce(Vec<u8>, bool) -> Option<ServerJsonRpcMessage>,
) -> Sse {
    let name = event.event.take().unwrap_or_default();
    let data = event.data.take().unwrap_or_default().into_bytes();
    event.data = read(data, MESSAGES.contains(&&*name)).and_then(|message| text(&message));
    event
}

fn text(message: &ServerJsonRpcMessage) -> Option<String> {
    serde_json::to_string(message).ok()
}

fn is_too_long(error: &(dyn StdError + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(Broken::TooLong(_)))
}

/// Why a stream is not read on.
#[derive(Debug)]
enum Broken {
    TooLong(usize),
    Body(Box<dyn StdError + Send + Sync>),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(limit) => write!(f, "an event has more bytes than the limit, {limit}"),
            Self::Body(error) => error.fmt(f),
        }
    }
}

impl StdError for Broken {}

/// Parses a body. It fails at an event of more than `max_bytes` bytes.
fn events<S, E>(body: S, max_bytes: usize) -> BoxStream<'static, Result<Sse, SseError>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: StdError + Send + Sync + 'static,
{
    let mut size = Size::default();
    let by_line = body.flat_map(|chunk| {
        let (lines, error) = match chunk {
            Ok(chunk) => (Some(lines(chunk).map(Ok)), None),
            Err(error) => (None, Some(Err(error))),
        };
        stream::iter(lines.into_iter().flatten().chain(error))
    });
    let bounded = by_line.map(move |chunk| {
        let chunk = chunk.map_err(|error| Broken::Body(error.into()))?;
        if size.add(&chunk) > max_bytes {
            return Err(Broken::TooLong(max_bytes));
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bounded).boxed()
}

/// Returns the lines of a chunk, each with its end. Of a chunk with a line that it cannot read, the
/// parser forgets the events before that line.
fn lines(mut chunk: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let end = chunk.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let length = end.map_or(chunk.len(), |at| at + 1);
        (length > 0).then(|| chunk.split_to(length))
    })
}

/// The size of the event that is arriving.
#[derive(Default)]
struct Size {
    bytes: usize,
    at_line_start: bool,
    /// The last byte was a carriage return, which ends a line, with a newline after it or without.
    after_return: bool,
}

impl Size {
    /// Adds a chunk and returns the largest size that an event had in it.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = 0;
        for byte in chunk {
            self.bytes += 1;
            match byte {
                b'\n' if self.after_return => {}
                b'\r' | b'\n' if self.at_line_start => self.bytes = 0,
                b'\r' | b'\n' => self.at_line_start = true,
                _ => self.at_line_start = false,
            }
            self.after_return = *byte == b'\r';
            largest = largest.max(self.bytes);
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[tokio::test]
    async fn an_event_has_a_limit_and_a_stream_has_none() {
        let chunks = |text: &'static str| {
            let chunks =
                text.as_bytes().chunks(3).map(|chunk| Ok::<_, io::Error>(Bytes::from(chunk)));
            futures_util::stream::iter(chunks.collect::<Vec<_>>())
        };
        for text in ["data: 1\n\ndata: 2\r\n\r\ndata: 3\n\n", "data: 1\r\rdata: 2\r\rdata: 3\r\r"] {
            let many = events(chunks(text), 12);
            let data: Vec<_> = many.map(|event| event.unwrap().data).collect().await;
            assert_eq!(data, ["1", "2", "3"].map(|data| Some(data.to_owned())));
        }
        let long = events(chunks("data: 1234567890\n\n"), 12);
        assert!(long.collect::<Vec<_>>().await.iter().any(Result::is_err));
    }

    #[tokio::test]
    async fn an_event_is_read_though_a_line_after_it_in_the_same_chunk_cannot_be() {
        let chunk = Bytes::from_static(b"data: 1\n\nno field\n");
        let body = futures_util::stream::iter([Ok::<_, io::Error>(chunk)]);
        let read: Vec<_> = events(body, 100).collect().await;
        let data = read.first().and_then(|event| event.as_ref().ok()?.data.as_deref());
        assert_eq!((data, read.len()), (Some("1"), 2));
        assert!(read[1].is_err());
    }
}
