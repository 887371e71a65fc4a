//! `POST /exec`: a program, which sees nothing of earlier ones but their files.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use serde::Deserialize;
use serde_json::json;

use super::workspace::{FileRef, Workspace, new_session};
use super::{Failed, Language, LibreChatBody};
use crate::http::answers::fit;
use crate::http::body::DialectJson;
use crate::http::credentials::Credentials;
use crate::http::dify::failure;
use crate::http::lenient;
use isolet_service::core::{Execution, Policy};
use isolet_service::node::Node;

/// How long a request waits for a slot. Clients wait for 15 s or longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
pub(in crate::http) struct ExecRequest {
    lang: String,
    code: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    files: Vec<FileRef>,
}

pub(super) async fn run(
    State(node): State<Arc<Node>>,
    credentials: Credentials,
    LibreChatBody(body): LibreChatBody,
) -> Result<DialectJson, Failed> {
    let tenant = node.tenant(&credentials)?;
    let ExecRequest { lang, code, args, session_id, files } = lenient::read(body, &[])?;
    let mut workspace = Workspace::find(&node, &tenant, session_id, &files)?;
    let language = match Language::read("lang", &lang) {
        Ok(language) => language,
        // Clients show the model what a program prints, and hide why a request was refused.
        Err(Failed(problem)) => return workspace.unchanged(&node, &tenant, &problem),
    };
    let session = node.create_own(&tenant, new_session(Policy::default()), PATIENCE).await?;
    let ran = async {
        let used = session.used();
        workspace.write(&node, used).await?;
        let execution = node.run(used, language.program(code, args, None)).await?;
        let execution = fit(&node, used, execution);
        let (id, files, said) = workspace.keep(&node, &tenant, used, &execution).await?;
        let stderr = stderr(&execution, &said);
        Ok(DialectJson(json!({
            "session_id": id,
            "stdout": execution.stdout,
            "stderr": stderr,
            "files": files,
        })))
    };
    let ran = ran.await;
    session.end().await;
    ran
}

/// Returns the standard error of a run, with why it failed and what is lost.
pub(super) fn stderr(execution: &Execution, said: &str) -> String {
    let failure = failure(execution).unwrap_or_default();
    let text = "the files that the code has written are lost\n";
    let loss = if execution.session_ended { text } else { "" };
    format!("{}{failure}{loss}{said}", execution.stderr)
}
