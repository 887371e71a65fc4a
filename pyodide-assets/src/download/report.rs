//! Shows the progress of several downloads as one step.

use std::sync::mpsc::{Receiver, Sender};

use super::Wanted;
use crate::Progress;

/// What a download tells of its progress.
#[derive(Debug)]
pub(super) struct News {
    /// The file's index.
    index: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The file has so many bytes, and is known to have so many in the end, or 0.
    Has(u64, u64),
    /// So many more bytes came.
    More(u64),
    Done,
}

/// Tells of the progress of one file.
#[derive(Debug)]
pub(super) struct Reporter {
    news: Sender<News>,
    index: usize,
}

impl Reporter {
    pub(super) fn new(news: Sender<News>, index: usize) -> Self {
        Self { news, index }
    }

    pub(super) fn has(&self, bytes: u64, of: u64) {
        self.tell(What::Has(bytes, of));
    }

    pub(super) fn more(&self, bytes: u64) {
        self.tell(What::More(bytes));
    }

    pub(super) fn done(&self) {
        self.tell(What::Done);
    }

    fn tell(&self, what: What) {
        // Without a receiver nobody wants to know.
        let _ = self.news.send(News { index: self.index, what });
    }
}

/// What is known of one file.
#[derive(Clone, Copy, Default)]
struct State {
    bytes: u64,
    size: u64,
    is_done: bool,
}

/// Shows the progress until nobody tells of any.
pub(super) fn show(files: &[Wanted], news: &Receiver<News>, progress: &mut dyn Progress) {
    let size = |file: &Wanted| file.size.exact().unwrap_or_default();
    let mut states: Vec<State> =
        files.iter().map(|file| State { size: size(file), ..State::default() }).collect();
    for News { index, what } in news {
        let Some(state) = states.get_mut(index) else { continue };
        match what {
            What::More(bytes) => {
                state.bytes += bytes;
                progress.advance(bytes);
                continue;
            }
            What::Has(bytes, size) => (state.bytes, state.size) = (bytes, size),
            What::Done => state.is_done = true,
        }
        let done = states.iter().filter(|state| state.is_done).count();
        let Some(under_way) = states.iter().position(|state| !state.is_done) else {
            progress.finish();
            continue;
        };
        let name = &files[under_way].name;
        let what = match files.len() {
            1 => name.clone(),
            count => format!("{name} (file {} of {count})", done + 1),
        };
        progress.start(&what, states.iter().map(|state| state.size).sum());
        progress.advance(states.iter().map(|state| state.bytes).sum());
    }
}
