//! A server of the Model Context Protocol that runs Python in sessions: for one client on standard
//! input and output, or for many by HTTP. A program makes it of [`Settings`]; it knows none of the
//! command's options.

mod approvals;
mod apps;
mod arguments;
mod durable;
mod files;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod handler;
mod http;
mod incoming;
mod outputs;
mod parked;
mod python;
mod result;
mod running;
mod settings;
mod skills;
mod stdio;
mod store;
pub mod stubs;
mod tools;
mod turn;

use std::future::Future;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;

use self::handler::Server;
pub use self::http::Listener;
use self::python::Python;
pub use self::settings::{
    Abilities, Bounds, HttpSettings, Made, OnCall, Sandboxes, Settings, StoreSettings,
};
use self::stdio::Stdio;

/// Serves the clients of a listener, or without it one client on standard input and output, which
/// may end the server, too. Another end is that of `end`. Then all sessions sleep or end.
///
/// # Errors
///
/// Fails if the settings are invalid, the client does not begin as the protocol says, the
/// connection fails, or `end` does.
pub async fn serve(
    settings: Settings,
    listener: Option<Listener>,
    end: impl Future<Output = Result<()>>,
) -> Result<()> {
    let python = Arc::new(Python::new(settings)?);
    // The first call does not wait for the image then, and errors come early to standard error.
    let warming = Arc::clone(&python);
    tokio::spawn(async move { warming.warm_up().await });
    let reaping = Arc::clone(&python);
    tokio::spawn(async move { reaping.give_up_idle_sessions().await });
    let served = match listener {
        Some(listener) => listener.serve(Arc::clone(&python), end).await,
        None => serve_pipes(Arc::clone(&python), end).await,
    };
    python.end_all().await;
    served
}

/// Serves one client on standard input and output.
async fn serve_pipes(python: Arc<Python>, end: impl Future<Output = Result<()>>) -> Result<()> {
    let server = Server::new(python, "stdio".to_owned());
    let serving = async {
        let running = match Box::pin(server.serve(Stdio::new(stdio_pipes()))).await {
            Ok(running) => running,
            // The client left before it had begun.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => bail!("the client did not begin as the protocol says: {error}"),
        };
        running.waiting().await.context("the connection failed")?;
        Ok(())
    };
    tokio::select! {
        result = serving => result,
        ended = end => ended,
    }
}
