//! The thread that serves the exchanges of all sessions of the process.

use std::sync::{Mutex, PoisonError, mpsc};

use tokio::runtime::{Builder, Handle};

use super::error::{NetError, NetErrorKind};

/// Threads for DNS lookups, which block.
const BLOCKING_THREADS: usize = 16;

/// Returns the runtime. The first successful call starts its thread.
pub(super) fn handle() -> Result<Handle, NetError> {
    static RUNTIME: Mutex<Option<Handle>> = Mutex::new(None);
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*runtime {
        return Ok(handle.clone());
    }
    let handle = start().map_err(|error| {
        NetError::new(
            NetErrorKind::Limit,
            format!("the host has no thread for the network: {error}"),
        )
    })?;
    *runtime = Some(handle.clone());
    Ok(handle)
}

fn start() -> std::io::Result<Handle> {
    let (sender, receiver) = mpsc::channel();
    let serve = move || {
        let mut builder = Builder::new_current_thread();
        let built = builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build();
        match built {
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
    std::thread::Builder::new().name("isolet-net".to_owned()).spawn(serve)?;
    receiver.recv().map_err(std::io::Error::other)?
}
