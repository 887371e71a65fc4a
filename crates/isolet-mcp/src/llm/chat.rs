//! A language model of a server with the API `/chat/completions`.

use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use url::{Position, Url};

use super::{Answer, MAX_ANSWER_BYTES, asking_for_json};
use crate::support::http_client;
use isolet::ToolError;

/// The maximum size of a response, in bytes: of an answer with what JSON adds to it.
const MAX_RESPONSE_BYTES: usize = 2 * MAX_ANSWER_BYTES;

/// The most characters of an error response that its exception shows.
const SHOWN_CHARS: usize = 500;

/// The pauses before a request is sent again, if the server does not name one.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// The longest pause that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

const SECRET: &str = "[secret]";

#[derive(Clone)]
pub(super) struct Chat {
    url: Url,
    model: Option<String>,
    key: Option<String>,
}

/// The part of a response that counts.
#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    total_tokens: Option<u64>,
}

impl Chat {
    pub(super) fn new(url: Url) -> Self {
        Self { url, model: None, key: None }
    }

    pub(super) fn set_model(&mut self, model: String) {
        self.model = Some(model);
    }

    pub(super) fn set_key(&mut self, key: String) {
        self.key = Some(key);
    }

    pub(super) async fn ask(
        &self,
        prompt: &str,
        schema: Option<&Json>,
    ) -> Result<Answer, ToolError> {
        let content = schema.map_or_else(|| prompt.to_owned(), |s| asking_for_json(prompt, s));
        let mut body = json!({"messages": [{"role": "user", "content": content}]});
        if let Some(model) = &self.model {
            body["model"] = model.as_str().into();
        }
        if let Some(schema) = schema {
            let named = json!({"name": "answer", "schema": schema});
            body["response_format"] = json!({"type": "json_schema", "json_schema": named});
        }
        let body = Bytes::from(body.to_string());
        let mut pauses = PAUSES.into_iter();
        loop {
            let (status, asked_pause, text) = self.send(body.clone()).await?;
            if status.is_success() {
                return self.read(&text);
            }
            let pause = is_temporary(status).then(|| pauses.next()).flatten();
            let Some(pause) = pause else {
                return Err(self.failed(&format!("answered HTTP {status}: "), &text));
            };
            tokio::time::sleep(asked_pause.unwrap_or(pause).min(LONGEST_PAUSE)).await;
        }
    }

    /// Sends a request. Returns the status, for how long the server asks to wait, and the body.
    async fn send(&self, body: Bytes) -> Result<(StatusCode, Option<Duration>, Bytes), ToolError> {
        let gone = |error: std::io::Error| {
            let server = &self.url[..Position::AfterPort];
            let message =
                format!("the language model's server `{server}` cannot be reached: {error}");
            ToolError::new("ConnectionError", message)
        };
        let client = http_client::client().await.map_err(gone)?;
        let mut request = client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            let mut header = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
                let message = "the language model's key has a character that no header may have";
                ToolError::new("RuntimeError", message)
            })?;
            header.set_sensitive(true);
            request = request.header(AUTHORIZATION, header);
        }
        let response = http_client::send(request.body(body)).await.map_err(gone)?;
        let status = response.status();
        let pause = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let pause = pause.and_then(|value| value.parse().ok()).map(Duration::from_secs);
        let body = http_client::whole(response.into_body(), MAX_RESPONSE_BYTES).await;
        let body = body.map_err(gone)?.ok_or_else(|| {
            let message =
                format!("the language model's response has more than {MAX_RESPONSE_BYTES} bytes");
            ToolError::new("RuntimeError", message)
        })?;
        Ok((status, pause, body))
    }

    fn read(&self, text: &Bytes) -> Result<Answer, ToolError> {
        let read: Result<Completion, _> = serde_json::from_slice(text);
        let completion = read
            .map_err(|error| self.failed(&format!("answered no completion ({error}): "), text))?;
        let tokens = completion.usage.and_then(|usage| usage.total_tokens);
        let message = completion.choices.into_iter().next().map(|choice| choice.message);
        match message {
            Some(Message { content: Some(content), .. }) => {
                Ok(Answer { text: self.redacted(&content), tokens })
            }
            Some(Message { refusal: Some(refusal), .. }) => {
                Err(self.failed("refused: ", refusal.as_bytes()))
            }
            _ => Err(self.failed("answered without a text: ", text)),
        }
    }

    fn failed(&self, what: &str, text: &[u8]) -> ToolError {
        let text = self.redacted(&String::from_utf8_lossy(text));
        let shown: String = text.trim().chars().take(SHOWN_CHARS).collect();
        ToolError::new("RuntimeError", format!("the language model's server {what}{shown}"))
    }

    fn redacted(&self, text: &str) -> String {
        match self.key.as_deref() {
            Some(key) if !key.is_empty() => text.replace(key, SECRET),
            _ => text.to_owned(),
        }
    }
}

fn is_temporary(status: StatusCode) -> bool {
    // 529 is Anthropic's "overloaded".
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504 | 529)
}
