//! The data that the files name.

pub(crate) mod output {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Stream {
        Stdout,
        Stderr,
    }
}
