//! Failures and time-outs of the network, as Python's HTTP clients report them: with the classes,
//! and at the places, that they have in CPython.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use isolet::{Permissions, Value};

use crate::util::{builder, eval, exec};

/// Longer than the guest waits where it is to give up, and shorter than where it is not.
const LATE: Duration = Duration::from_secs(1);

/// Answers by the request's path, one request a connection. Ends with the process.
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut header = String::from("-");
    while !header.trim().is_empty() {
        header.clear();
        reader.read_line(&mut header)?;
    }
    let answer: &[u8] = match line.split(' ').nth(1).unwrap_or_default() {
        "/late" => {
            std::thread::sleep(LATE);
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlate"
        }
        "/never" => b"",
        "/stall" => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "/short" => {
            return stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
        }
        "/cut" => {
            return stream
                .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
        }
        "/gone" => return Ok(()),
        _ => {
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
              3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        }
    };
    stream.write_all(answer)?;
    // Until the client has given up.
    reader.read_to_end(&mut Vec::new()).map(|_| ())
}

fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

const CLIENTS: &str = "
import asyncio, errno, http.client, socket, urllib.error, urllib.request
import httpx, requests, urllib3

def seen(ask, *args, **options):
    try:
        return ask(*args, **options)
    except Exception as error:
        reason = getattr(error, 'reason', None)
        inner = f'({type(reason).__name__})' if isinstance(error, urllib.error.URLError) else ''
        return type(error).__name__ + inner

def by_requests(url, **options): return requests.get(url, **options).text
def by_httpx(url, **options): return httpx.get(url, **options).text
def by_urllib(url, **options): return urllib.request.urlopen(url, **options).read().decode()
def by_urllib3(url, **options):
    return urllib3.PoolManager().request('GET', url, retries=False, **options).data.decode()
def by_async(url, **options):
    async def ask():
        async with httpx.AsyncClient() as client:
            return (await client.get(url, **options)).text
    return asyncio.run(ask())
";

#[tokio::test]
async fn clients_fail_with_the_exceptions_that_they_raise_in_cpython() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = format!("127.0.0.1:{}", server());
    let permissions = ["requests", "httpx"]
        .iter()
        .fold(Permissions::none(), |all, package| all.allow_package(package).unwrap());
    let permissions = permissions
        .allow_net(&server)
        .and_then(|all| all.allow_net(&gone.to_string()))
        .and_then(|all| all.allow_net("nowhere.invalid"))
        .unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    exec(&mut session, CLIENTS).await;
    let addresses =
        format!("U, R, N = 'http://{server}', 'http://{gone}', 'http://nowhere.invalid'");
    exec(&mut session, addresses.as_str()).await;
    let httpx = |which: &str| format!("timeout=httpx.Timeout(9, {which}=0.5)");
    let urllib3 = "timeout=urllib3.Timeout(connect=9, read=0.1)";
    let cases = [
        // The read time-out counts while the answer is waited for, and no other one.
        ("by_requests, U + '/never', timeout=0.1", "ReadTimeout"),
        ("by_requests, U + '/never', timeout=(9, 0.1)", "ReadTimeout"),
        ("by_requests, U + '/late', timeout=(0.5, 9)", "late"),
        ("by_requests, U + '/stall', timeout=(9, 0.5)", "ConnectionError"),
        (&format!("by_urllib3, U + '/never', {urllib3}"), "ReadTimeoutError"),
        ("by_urllib, U + '/never', timeout=0.1", "TimeoutError"),
        (&format!("by_httpx, U + '/never', {}", httpx("read")), "ReadTimeout"),
        (&format!("by_httpx, U + '/late', {}", httpx("write")), "late"),
        (&format!("by_async, U + '/never', {}", httpx("read")), "ReadTimeout"),
        (&format!("by_async, U + '/stall', {}", httpx("read")), "ReadTimeout"),
        (&format!("by_async, U + '/late', {}", httpx("write")), "late"),
        // Nobody listens.
        ("by_requests, R", "ConnectionError"),
        ("by_urllib3, R", "NewConnectionError"),
        ("by_urllib, R", "URLError(ConnectionRefusedError)"),
        ("by_httpx, R", "ConnectError"),
        ("by_async, R", "ConnectError"),
        ("socket.create_connection, R[7:].split(':')", "ConnectionRefusedError"),
        (
            "lambda: errno.errorcode[socket.socket().connect_ex(('127.0.0.1', int(R[17:])))]",
            "ECONNREFUSED",
        ),
        // There is no such name.
        ("by_requests, N", "ConnectionError"),
        ("by_urllib3, N", "NameResolutionError"),
        ("by_urllib, N", "URLError(gaierror)"),
        ("by_httpx, N", "ConnectError"),
        ("by_async, N", "ConnectError"),
        // The connection ends early: in a body of known length, in one in chunks, before the head.
        ("by_requests, U + '/short'", "ChunkedEncodingError"),
        ("by_urllib3, U + '/short'", "ProtocolError"),
        ("by_urllib, U + '/short'", "IncompleteRead"),
        ("by_httpx, U + '/short'", "RemoteProtocolError"),
        ("by_async, U + '/short'", "RemoteProtocolError"),
        ("by_requests, U + '/cut'", "ChunkedEncodingError"),
        ("by_urllib, U + '/cut'", "IncompleteRead"),
        ("by_httpx, U + '/cut'", "RemoteProtocolError"),
        ("by_async, U + '/cut'", "RemoteProtocolError"),
        ("by_requests, U + '/gone'", "ConnectionError"),
        ("by_urllib, U + '/gone'", "RemoteDisconnected"),
        ("by_httpx, U + '/gone'", "RemoteProtocolError"),
        ("by_async, U + '/gone'", "RemoteProtocolError"),
        // A whole one in chunks.
        ("by_requests, U", "abcde"),
        ("by_urllib, U", "abcde"),
        ("by_httpx, U", "abcde"),
        ("by_async, U", "abcde"),
    ];
    for (arguments, expected) in cases {
        let code = format!("seen({arguments})");
        assert_eq!(eval(&mut session, code.as_str()).await, Value::from(expected), "{code}");
    }
}
