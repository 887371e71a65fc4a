//! A tokio runtime for tools whose caller has none, and threads for blocking tools.
//!
//! There is one per process, and it is never shut down: a function that never returns must not
//! block anything else.

use std::sync::{Arc, OnceLock};

use tokio::runtime::{Builder, Handle};

use super::queue::CallPermit;
use crate::data::tool::ToolError;

/// The runtime's maximum number of threads. High, because each session has its own limit and must
/// not use up the threads of others.
const MAX_THREADS: usize = 1 << 20;

/// Starts the runtime's thread on the first call. Returns `None` if it cannot start.
fn own() -> Option<&'static Handle> {
    static OWN: OnceLock<Option<Handle>> = OnceLock::new();
    OWN.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let serve = move || {
            let mut builder = Builder::new_current_thread();
            if let Ok(runtime) = builder.enable_all().max_blocking_threads(MAX_THREADS).build() {
                // The caller that started this thread waits for the handle.
                let _ = sender.send(runtime.handle().clone());
                runtime.block_on(std::future::pending::<()>());
            }
        };
        std::thread::Builder::new().name("isolet-tools".to_owned()).spawn(serve).ok()?;
        receiver.recv().ok()
    })
    .as_ref()
}

/// Calls `f` in a context where tokio's timers and sockets work, whatever executor the caller uses.
pub(crate) fn entered<T>(f: impl FnOnce() -> T) -> T {
    if Handle::try_current().is_ok() {
        return f();
    }
    let _context = own().map(Handle::enter);
    f()
}

/// Returns a timer that does not depend on the caller's runtime.
pub(crate) fn sleep(duration: std::time::Duration) -> Option<tokio::time::Sleep> {
    let _context = own()?.enter();
    Some(tokio::time::sleep(duration))
}

/// Runs `f` on a separate thread. If the future is dropped, `f` continues and keeps its permit.
pub(super) async fn blocking<T: Send + 'static>(
    permit: Option<Arc<CallPermit>>,
    f: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let unavailable = || ToolError::new("RuntimeError", "the host has no thread for the call");
    let main = move || {
        let result = f();
        drop(permit);
        result
    };
    match own().ok_or_else(unavailable)?.spawn_blocking(main).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(unavailable()),
        },
    }
}
