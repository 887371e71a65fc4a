//! Replaces secrets in bytes that come in pieces.

use std::sync::Arc;

use bytes::Bytes;

use super::seen::Seen;
use super::{Form, Place, Redactor, replaced};

/// Bytes that come in pieces. Of each, what may begin a secret waits for the next.
pub(crate) struct RedactedStream {
    redactor: Arc<Redactor>,
    held: Vec<u8>,
}

impl RedactedStream {
    pub(crate) fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, held: Vec::new() }
    }

    /// Takes a piece and returns what can be passed on.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Bytes {
        self.held.extend_from_slice(piece);
        self.pass_on(false)
    }

    /// Returns what waits for more, at the end.
    pub(crate) fn finish(&mut self) -> Bytes {
        self.pass_on(true)
    }

    fn pass_on(&mut self, is_end: bool) -> Bytes {
        let views = Seen::views(&self.held);
        let mut places = self.redactor.places(&self.held, &views);
        let mut cut = self.held.len();
        if !is_end {
            let undecided = self.redactor.undecided(&self.held, &views);
            // A secret that may be the beginning of a longer one waits, too.
            let is_across = |place: &&Place<'_>| place.start < undecided && undecided < place.end;
            cut = places.iter().find(is_across).map_or(undecided, |place| place.start);
            places.retain(|place| place.start < cut);
        }
        let passed = replaced(self.held.get(..cut).unwrap_or(&self.held), &places);
        self.held.drain(..cut);
        passed.into()
    }
}

impl Redactor {
    /// Returns where the bytes at the end begin that may be the beginning of a form.
    fn undecided(&self, bytes: &[u8], views: &[Seen]) -> usize {
        let mut start = bytes.len() - self.begun(bytes);
        for view in views {
            let complete = view.complete();
            let begun = self.begun(complete);
            if begun > 0 || view.open_start().is_some() {
                start = start.min(view.start(complete.len() - begun));
            }
        }
        start
    }

    /// Returns how many bytes at the end begin a form, at most.
    fn begun(&self, bytes: &[u8]) -> usize {
        let longest = self.forms.first().map_or(0, |form| form.bytes().len());
        let begins = |suffix: &[u8]| {
            let begins = |form: &Form| form.bytes().len() > suffix.len();
            let mut longer = self.forms.iter().take_while(|form| begins(form));
            longer.any(|form| form.bytes().starts_with(suffix))
        };
        let most = bytes.len().min(longest.saturating_sub(1));
        let suffix = |length: &usize| bytes.get(bytes.len() - length..).unwrap_or_default();
        (1..=most).rev().find(|length| begins(suffix(length))).unwrap_or(0)
    }
}
