//! The HTTP client of the servers that a user names: those of MCP and of language models.

use std::io;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::Response;
use isolet_pyodide_assets::http::{self, Authorities, Failure};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};
use tokio::sync::OnceCell;
use url::Url;

/// The maximum number of connections to one server that wait for a request.
const MAX_IDLE: usize = 8;

/// The body of a response. It has no time limit.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Returns the process's client. Redirects are not followed: the headers of a request are for the
/// server that the user has named. Its connections belong to the runtime that asks for it, which is
/// always that of [`background`](super::background).
pub(crate) async fn client() -> io::Result<Client> {
    static CLIENT: OnceCell<Client> = OnceCell::const_new();
    // The system's list of authorities is read from files.
    let make = || async { tokio::task::spawn_blocking(make).await.map_err(io::Error::other)? };
    CLIENT.get_or_try_init(make).await.cloned()
}

fn make() -> io::Result<Client> {
    let client = http::client(&Authorities::default()).map_err(io::Error::other)?;
    let client = client.redirect(Policy::none()).pool_max_idle_per_host(MAX_IDLE);
    client.build().map_err(io::Error::other)
}

/// Sends a request. The texts of the errors, also of the body's, name what may help, and neither
/// the URL nor a password.
pub(crate) async fn send(request: RequestBuilder) -> io::Result<Response<Body>> {
    let (client, request) = request.build_split();
    let request = request.map_err(|error| io::Error::other(error.without_url()))?;
    let url = request.url().clone();
    let response = client.execute(request).await.map_err(|error| failure(&error, &url))?;
    let response = Response::<reqwest::Body>::from(response);
    Ok(response.map(|body| body.map_err(move |error| failure(&error, &url)).boxed_unsync()))
}

/// Reads a body to its end. Returns nothing for one of more than `max_bytes` bytes.
pub(crate) async fn whole(body: Body, max_bytes: usize) -> io::Result<Option<Bytes>> {
    match Limited::new(body, max_bytes).collect().await {
        Ok(body) => Ok(Some(body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn failure(error: &reqwest::Error, url: &Url) -> io::Error {
    io::Error::other(Failure::of(error, url.as_str()).in_environment())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::{Arc, Barrier};
    use std::time::Duration;

    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn as_many_connections_are_kept_as_may_wait_for_a_request() {
        const AT_ONCE: usize = MAX_IDLE + 2;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (together, (sender, mut ended)) =
            (Arc::new(Barrier::new(AT_ONCE)), unbounded_channel());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, together, sender) =
                    (stream.unwrap(), together.clone(), sender.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let head = reader.by_ref().lines().map(Result::unwrap);
                    head.take_while(|line| !line.is_empty()).for_each(drop);
                    together.wait();
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    (&stream).write_all(answer).unwrap();
                    // It ends with the connection.
                    let _ = reader.read(&mut [0]);
                    sender.send(())
                });
            }
        });
        let client = make().unwrap();
        let answers = (0..AT_ONCE).map(|_| {
            let request = client.get(&url);
            tokio::spawn(async { whole(send(request).await?.into_body(), 2).await })
        });
        for answer in answers.collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap().unwrap().unwrap(), "ok");
        }
        let longest = Duration::from_mins(1);
        for _ in MAX_IDLE..AT_ONCE {
            tokio::time::timeout(longest, ended.recv()).await.unwrap();
        }
        assert!(ended.try_recv().is_err());
        drop(client);
        for _ in 0..MAX_IDLE {
            tokio::time::timeout(longest, ended.recv()).await.unwrap();
        }
    }
}
