//! A language model that is a program of the host.

use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdout, Command};

use super::{Answer, MAX_ANSWER_BYTES, asking_for_json};
use isolet::ToolError;

/// The most bytes of a failed program's standard error that its exception shows, from the end.
const SHOWN_BYTES: usize = 1_000;

/// The processes that a program has started. Dropping it ends them.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        // The program was not waited for yet, so the number is not another's.
        let _ = self.0.map(|group| kill_process_group(group, Signal::KILL));
    }
}

pub(super) async fn ask(
    words: &[String],
    prompt: &str,
    schema: Option<&Json>,
) -> Result<Answer, ToolError> {
    let [program, arguments @ ..] = words else {
        return Err(ToolError::new("RuntimeError", "there is no command"));
    };
    let failed = |what: &str, error: &io::Error| {
        let message = format!("the language model's command `{program}` {what}: {error}");
        ToolError::new("RuntimeError", message)
    };
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| failed("cannot be started", &error))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = Group(group);
    let prompt = schema.map_or_else(|| prompt.to_owned(), |schema| asking_for_json(prompt, schema));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program may answer without reading everything.
            let _ = stdin.write_all(prompt.as_bytes()).await;
        }
        Ok(())
    };
    let read = async {
        let answer = whole(stdout).await.map_err(|error| failed("cannot be read", &error))?;
        if answer.len() > MAX_ANSWER_BYTES {
            let message =
                format!("the language model's answer has more than {MAX_ANSWER_BYTES} bytes");
            return Err(ToolError::new("RuntimeError", message));
        }
        Ok(answer)
    };
    let ((), answer, errors) = tokio::try_join!(write, read, async { Ok(end_of(stderr).await) })?;
    let status = child.wait().await.map_err(|error| failed("cannot be waited for", &error))?;
    // It has been waited for.
    std::mem::forget(group);
    if !status.success() {
        let shown = String::from_utf8_lossy(&errors);
        let message = format!(
            "the language model's command `{program}` ended with {status}: {}",
            shown.trim()
        );
        return Err(ToolError::new("RuntimeError", message));
    }
    let text = String::from_utf8_lossy(&answer);
    Ok(Answer { text: text.strip_suffix('\n').unwrap_or(&text).to_owned(), tokens: None })
}

/// Reads an answer, and at most one byte more than it may have.
async fn whole(stdout: Option<ChildStdout>) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take(MAX_ANSWER_BYTES as u64 + 1).read_to_end(&mut answer).await?;
    }
    Ok(answer)
}

/// Reads everything, and returns the end of it.
async fn end_of(stderr: Option<ChildStderr>) -> Vec<u8> {
    let mut end = Vec::new();
    let Some(mut stderr) = stderr else { return end };
    while let Ok(1..) = stderr.read_buf(&mut end).await {
        let excess = end.len().saturating_sub(SHOWN_BYTES);
        end.drain(..excess);
    }
    end
}
