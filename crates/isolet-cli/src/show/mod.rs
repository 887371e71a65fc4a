//! Output for people and programs: text on terminals, pictures, tables, progress, reports,
//! statuses.

pub(crate) mod directory;
pub(crate) mod exit;
pub(crate) mod filter;
pub(crate) mod outcome;
pub(crate) mod pictures;
pub(crate) mod print;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod sixel;
pub(crate) mod tables;
pub(crate) mod terminal;
pub(crate) mod tokens;
pub(crate) mod viewer;
