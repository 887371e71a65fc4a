//! Streams of server-sent events with a limit on the size of an event.

use std::error::Error as StdError;
use std::io;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use sse_stream::{Error as SseError, Sse, SseStream};

/// Parses a body. It fails at an event of more than `max_bytes` bytes.
pub(super) fn events<S, E>(body: S, max_bytes: usize) -> BoxStream<'static, Result<Sse, SseError>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: StdError + Send + Sync + 'static,
{
    let mut size = Size::default();
    let bounded = body.map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        if size.add(&chunk) > max_bytes {
            let message = format!("an event has more bytes than the limit, {max_bytes}");
            return Err(io::Error::other(message));
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bounded).boxed()
}

/// The size of the event that is arriving.
#[derive(Default)]
struct Size {
    bytes: usize,
    at_line_start: bool,
}

impl Size {
    /// Adds a chunk and returns the largest size that an event had in it.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut largest = 0;
        for byte in chunk {
            self.bytes += 1;
            match byte {
                b'\n' if self.at_line_start => self.bytes = 0,
                b'\n' => self.at_line_start = true,
                b'\r' => {}
                _ => self.at_line_start = false,
            }
            largest = largest.max(self.bytes);
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_event_has_a_limit_and_a_stream_has_none() {
        let chunks = |text: &'static str| {
            let chunks =
                text.as_bytes().chunks(3).map(|chunk| Ok::<_, io::Error>(Bytes::from(chunk)));
            futures_util::stream::iter(chunks.collect::<Vec<_>>())
        };
        let many = events(chunks("data: 1\n\ndata: 2\r\n\r\ndata: 3\n\n"), 12);
        let data: Vec<_> = many.map(|event| event.unwrap().data).collect().await;
        assert_eq!(data, ["1", "2", "3"].map(|data| Some(data.to_owned())));
        let long = events(chunks("data: 1234567890\n\n"), 12);
        assert!(long.collect::<Vec<_>>().await.iter().any(Result::is_err));
    }
}
