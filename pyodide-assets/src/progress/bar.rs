//! A progress bar on standard error, drawn only on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::Progress;

/// Draws each step as a line on standard error, and removes the line when the step ends.
///
/// Draws nothing if standard error is not a terminal. The caller must decide whether a person
/// watches the terminal, unlike in a build log, and otherwise use [`Silent`](crate::Silent).
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Makes a bar that draws on standard error.
    #[must_use]
    pub fn stderr() -> Self {
        Self { bar: ProgressBar::hidden() }
    }
}

impl Progress for Bar {
    fn start(&mut self, what: &str, total: u64) {
        let (length, template) = if total == 0 {
            (None, "{spinner} {msg} {elapsed}")
        } else {
            (Some(total), "{spinner} {msg} {wide_bar} {bytes}/{total_bytes}")
        };
        // A step that begins again keeps its line.
        if self.bar.is_hidden() || self.bar.is_finished() {
            self.bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(Duration::from_millis(100));
        } else {
            self.bar.reset();
            match length {
                Some(length) => self.bar.set_length(length),
                None => self.bar.unset_length(),
            }
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_message(what.to_owned());
    }

    fn advance(&mut self, bytes: u64) {
        self.bar.inc(bytes);
    }

    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}
