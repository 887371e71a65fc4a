//! A progress bar on standard error, drawn only when a person is there to see it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::Progress;

/// Draws each step as a line on standard error and removes it when the step ends.
///
/// Draws nothing when standard error is not a terminal. Whether a terminal is also a person's, and
/// not a build log, is for the caller to decide: use [`Silent`](crate::Silent) otherwise.
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
        self.finish();
        let (length, template) = if total == 0 {
            (None, "{spinner} {msg} {elapsed}")
        } else {
            (Some(total), "{spinner} {msg} {wide_bar} {bytes}/{total_bytes}")
        };
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        self.bar = bar;
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
