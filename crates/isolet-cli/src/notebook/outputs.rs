//! Gathers the output, displays and exceptions of a cell in Jupyter's format.

use isolet::{Display, Execution, Limits, Outcome, OutputChunk, RunEvent, Stream};
use isolet_support::inert::made_inert;
use isolet_support::mime_bundle::{CellError, Data, bundle};
use isolet_support::size::shown_bytes;
use serde_json::{Value as Json, json};

use isolet_service::core::in_options;

/// The most bytes of each stream that a cell has in the file, unless the user sets another limit.
const STREAM_BYTES: u64 = 16 << 20;
/// The maximum number of pieces of text of a cell. A piece ends where one of another stream begins.
const PIECES: usize = 10_000;

/// Formats besides those of text whose lines Jupyter writes one by one.
const IN_LINES: [&str; 2] = ["application/javascript", "image/svg+xml"];

/// The outputs of one cell, in order.
pub(super) struct Outputs {
    kept: Vec<Output>,
    pieces: usize,
    stdout: u64,
    stderr: u64,
    max_bytes: u64,
    /// Set if the value of the last line is one of the outputs.
    has_value: bool,
}

enum Output {
    Text(Stream, Vec<u8>),
    /// An object in its formats.
    Display(Json),
    /// The value of the last line in its formats.
    Value(Json),
    Failure(Json),
}

impl Outputs {
    pub(super) fn new(max_bytes: Option<u64>) -> Self {
        Self {
            kept: Vec::new(),
            pieces: 0,
            stdout: 0,
            stderr: 0,
            max_bytes: max_bytes.unwrap_or(STREAM_BYTES),
            has_value: false,
        }
    }

    pub(super) fn add(&mut self, event: RunEvent) {
        match event {
            RunEvent::Output(chunk) => self.write(&chunk),
            RunEvent::Display(display) if display.is_result() => {
                self.has_value = true;
                self.kept.push(Output::Value(written(&display)));
            }
            RunEvent::Display(display) => self.kept.push(Output::Display(written(&display))),
            _ => {}
        }
    }

    fn write(&mut self, chunk: &OutputChunk) {
        let taken = match chunk.stream {
            Stream::Stderr => &mut self.stderr,
            _ => &mut self.stdout,
        };
        let room = usize::try_from(self.max_bytes - *taken).unwrap_or(usize::MAX);
        let bytes = &chunk.bytes[..room.min(chunk.bytes.len())];
        match self.kept.last_mut() {
            Some(Output::Text(stream, text)) if *stream == chunk.stream => text.extend(bytes),
            _ if bytes.is_empty() || self.pieces == PIECES => return,
            _ => {
                self.pieces += 1;
                self.kept.push(Output::Text(chunk.stream, bytes.to_vec()));
            }
        }
        *taken += bytes.len() as u64;
    }

    /// Adds how the cell ended. Returns `true` if output was left out.
    pub(super) fn end(&mut self, execution: &Execution) -> bool {
        if let (Outcome::Completed(_), Some(repr)) = (execution.outcome(), execution.repr())
            && !self.has_value
            && repr != "None"
        {
            self.kept.push(Output::Value(json!({ "text/plain": lines(repr) })));
        }
        let missing = self.missing(execution);
        if !missing.is_empty() {
            self.tell(missing.concat());
        }
        self.kept.extend(failure(execution).map(Output::Failure));
        !missing.is_empty()
    }

    /// Adds lines of the host to standard error.
    fn tell(&mut self, lines: String) {
        match self.kept.last_mut() {
            Some(Output::Text(Stream::Stderr, text)) => {
                text.extend(if text.ends_with(b"\n") { "" } else { "\n" }.bytes());
                text.extend(lines.bytes());
            }
            _ => self.kept.push(Output::Text(Stream::Stderr, lines.into_bytes())),
        }
    }

    /// Returns a line about each kind of output that was left out.
    fn missing(&self, execution: &Execution) -> Vec<String> {
        let usage = execution.usage();
        let mut lines = Vec::new();
        for (name, taken, total) in [
            ("output", self.stdout, usage.stdout_bytes),
            ("error", self.stderr, usage.stderr_bytes),
        ] {
            if total > taken {
                lines.push(format!(
                    "isolet: of {total} bytes of standard {name} the first {taken} are here; a \
                     notebook has at most {} of each stream of a cell, as `--max-output` says, in \
                     {PIECES} pieces\n",
                    shown_bytes(self.max_bytes)
                ));
            }
        }
        if let dropped @ 1.. = execution.truncated().displays {
            lines.push(format!(
                "isolet: displays left out: {dropped}; a cell may have {} displays with together \
                 {}\n",
                Limits::DEFAULT_DISPLAYS,
                shown_bytes(Limits::DEFAULT_DISPLAY_BYTES)
            ));
        }
        lines
    }

    /// Returns the outputs as in the file, for the cell that was run as the `count`-th.
    pub(super) fn into_json(self, count: u64) -> Json {
        self.kept.into_iter().map(|output| output.into_json(count)).collect()
    }
}

impl Output {
    fn into_json(self, count: u64) -> Json {
        match self {
            Self::Text(stream, bytes) => json!({
                "name": if stream == Stream::Stderr { "stderr" } else { "stdout" },
                "output_type": "stream",
                "text": lines(&String::from_utf8_lossy(&bytes)),
            }),
            Self::Display(data) => {
                json!({ "data": data, "metadata": {}, "output_type": "display_data" })
            }
            Self::Value(data) => json!({
                "data": data,
                "execution_count": count,
                "metadata": {},
                "output_type": "execute_result",
            }),
            Self::Failure(failure) => failure,
        }
    }
}

/// Returns the output about a cell that did not complete.
fn failure(execution: &Execution) -> Option<Json> {
    let CellError { name, message, traceback } = CellError::of(execution, in_options)?;
    Some(json!({
        "ename": name, "evalue": message, "output_type": "error", "traceback": traceback,
    }))
}

/// Returns the formats of a display: text in lines, JSON as it is, bytes in base64.
fn written(display: &Display) -> Json {
    let as_written = |(format, data): (String, Data)| {
        let data = match data {
            Data::Bytes(base64) => base64.into(),
            Data::Json(json) => json,
            Data::Text(text) if format.starts_with("text/") || IN_LINES.contains(&&*format) => {
                lines(&text)
            }
            Data::Text(text) => text.into(),
        };
        (format, data)
    };
    Json::Object(made_inert(bundle(display)).into_iter().map(as_written).collect())
}

fn lines(text: &str) -> Json {
    text.split_inclusive('\n').collect::<Vec<_>>().into()
}
