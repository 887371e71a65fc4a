//! The channels of a kernel, over one WebSocket.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use isolet_jupyter::kernel::Arrival;
use tokio_websockets::CloseCode;

use super::credentials::JupyterCredentials;
use super::kernels::Connection;
use super::{Served, message};
use crate::http::MAX_BODY_BYTES;
use crate::http::body::in_turn;
use crate::http::problem::Problem;
use crate::http::websocket::{Socket, Upgrade};

pub(super) async fn connect(
    State(gateway): Served,
    credentials: JupyterCredentials,
    Path(id): Path<String>,
    upgrade: Upgrade,
) -> Result<Response, Problem> {
    let kernel = gateway.kernel(&credentials, &id)?;
    let mut connection = kernel.connect()?;
    let node = Arc::clone(&gateway.node);
    upgrade.accept(&node, MAX_BODY_BYTES, async move |mut socket| {
        let (code, reason) = serve(&mut socket, &mut connection).await;
        drop(connection);
        socket.close(code, &reason).await;
    })
}

/// Passes messages on in both directions. Returns why the connection is closed.
async fn serve(socket: &mut Socket, connection: &mut Connection) -> (CloseCode, String) {
    let kernel = Arc::clone(connection.kernel());
    loop {
        tokio::select! {
            biased;
            text = connection.next() => {
                let Some(text) = text else {
                    let code = if kernel.ended().is_cancelled() {
                        CloseCode::GOING_AWAY
                    } else {
                        CloseCode::POLICY_VIOLATION
                    };
                    return (code, connection.reason());
                };
                if socket.deliver(text.to_vec()).await.is_none() {
                    break;
                }
            }
            text = socket.next() => {
                let Some(text) = text else { break };
                let number = connection.number;
                match in_turn(text.len(), || message::read(&text, number)).await {
                    Ok(request) => {
                        let sent = kernel.send(Arrival::Request(request));
                        if socket.during(sent).await.is_none() {
                            break;
                        }
                    }
                    Err(problem) => return (CloseCode::INVALID_FRAME_PAYLOAD_DATA, problem.text()),
                }
            }
        }
    }
    (CloseCode::NORMAL_CLOSURE, String::new())
}
