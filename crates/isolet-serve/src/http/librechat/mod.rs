//! The routes of `LibreChat`'s code interpreter: programs in sessions of their own, with the files
//! of storage sessions, which the node keeps in between. Clients read the texts of errors.

pub(super) mod exec;
mod files;
pub(super) mod programmatic;
mod waiting;
pub(super) mod workspace;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequest;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Router};
use isolet::{Syntax, Value};
use serde_json::json;

use super::body::JsonBody;
use super::problem::Problem;
use isolet_service::core::{Run, RunOptions};
use isolet_service::node::{Node, Refusal};

use self::waiting::WaitingRuns;

/// The first segment of all paths.
pub(super) const PREFIX: &str = "librechat";

pub(super) fn routes() -> Router<Arc<Node>> {
    let routes = Router::new()
        .route("/exec", post(exec::run))
        .route("/exec/programmatic", post(programmatic::run))
        .route("/upload", post(files::upload))
        .route("/upload/batch", post(files::upload_batch))
        .route("/download/{session}/{file}", get(files::download))
        .route("/files/{session}", get(files::list))
        .route("/files/{session}/{file}", delete(files::remove))
        .route("/sessions/{session}/objects/{file}", get(files::describe))
        .layer(Extension(Arc::<WaitingRuns>::default()));
    Router::new().nest(&format!("/{PREFIX}"), routes)
}

/// A failed request, in `LibreChat`'s form.
struct Failed(Problem);

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.into())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let text = self.0.text();
        self.0.answered_as(&json!({"error": text, "message": text}))
    }
}

/// Refuses a request.
pub(super) fn refused(refusal: Refusal) -> Response {
    Failed::from(refusal).into_response()
}

/// A body of JSON, whose failure has `LibreChat`'s form.
struct LibreChatBody(Value);

impl<S: Send + Sync> FromRequest<S> for LibreChatBody {
    type Rejection = Failed;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Failed> {
        let JsonBody(value) = JsonBody::from_request(request, state).await?;
        Ok(Self(value))
    }
}

/// What code is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Bash,
}

impl Language {
    /// Reads the name of a language, `name` being that of its field.
    fn read(field: &str, name: &str) -> Result<Self, Failed> {
        match name {
            "py" | "python" | "python3" => Ok(Self::Python),
            "bash" | "sh" => Ok(Self::Bash),
            _ => Err(Failed(Problem::unreadable(format!(
                "`{field}` is {name:?}, and has to be `py` or `bash`: isolet runs no other language"
            )))),
        }
    }

    /// Returns a program in this language.
    fn program(self, code: String, argv: Vec<String>, timeout: Option<f64>) -> Run {
        let (syntax, name) = match self {
            Self::Python => (Syntax::Python, "main.py"),
            Self::Bash => (Syntax::Shell, "script.sh"),
        };
        let options = RunOptions {
            timeout,
            syntax,
            program: true,
            argv: Some(argv),
            name: Some(name.to_owned()),
            working_directory: Some(workspace::DIRECTORY.to_owned()),
            ..RunOptions::default()
        };
        Run { code, inputs: Vec::new(), options, input: None }
    }
}
