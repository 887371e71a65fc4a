//! The files of `src/fs` that read what the guest sends.

#[path = "../../src/fs/error.rs"]
mod error;
#[path = "../../src/fs/limits.rs"]
mod limits;
#[path = "../../src/fs/path.rs"]
pub(crate) mod path;
#[path = "../../src/fs/request.rs"]
mod request;

pub(crate) use error::FileError;
pub(crate) use limits::FileLimits;
pub(crate) use request::{FileReply, FileRequest};
