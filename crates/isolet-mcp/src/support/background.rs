//! A thread that serves the process's connections to servers. A caller needs no runtime, and a
//! connection outlives the caller that began it.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

use isolet::internals::lock;

/// Threads for files, commands of configurations and DNS lookups, which block.
const BLOCKING_THREADS: usize = 32;

/// Returns the runtime. The first successful call starts its thread.
pub(crate) fn handle() -> io::Result<Handle> {
    static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);
    let mut runtime = lock(&RUNTIME);
    if let Some(handle) = &*runtime {
        return Ok(handle.clone());
    }
    let handle = start()?;
    *runtime = Some(handle.clone());
    Ok(handle)
}

fn start() -> io::Result<Handle> {
    let (sender, receiver) = mpsc::channel();
    let serve = move || {
        let mut builder = Builder::new_current_thread();
        match builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build() {
            Ok(runtime) => {
                // The caller that started this thread waits for the handle.
                let _ = sender.send(Ok(runtime.handle().clone()));
                runtime.block_on(std::future::pending::<()>());
            }
            Err(error) => {
                let _ = sender.send(Err(error));
            }
        }
    };
    std::thread::Builder::new().name("isolet-mcp".to_owned()).spawn(serve)?;
    receiver.recv().map_err(io::Error::other)?
}

/// Runs a future on the runtime until it ends, also if its caller stops waiting.
pub(crate) async fn finish<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    handle()?.spawn(future).await.map_err(io::Error::other)
}

/// Runs a future on the runtime as long as somebody waits for it.
pub(crate) async fn serve<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    Served(handle()?.spawn(future)).await
}

struct Served<T>(JoinHandle<T>);

impl<T> Future for Served<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(io::Error::other)
    }
}

impl<T> Drop for Served<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
