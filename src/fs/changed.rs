//! Tells whether a change of a file was made, of a session whose process ended meanwhile.

use serde::{Deserialize, Serialize};

use super::error::FileError;
use super::path::RelativePath;
use super::request::{FileReply, FileRequest, FileStat, OpenFlags};
use super::system::FileSystem;

/// What there was before a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Before {
    /// It makes no difference: the change is the same if it is made twice.
    #[default]
    Any,
    /// Nothing with this name.
    Absent,
    /// A file of this length, a directory or a link.
    Present { bytes: u64 },
}

impl FileSystem {
    /// Returns what there is before a change.
    pub(crate) fn before(&self, request: &FileRequest<'_>) -> Before {
        let found = match *request {
            FileRequest::Write { file, .. } => match self.handle(file) {
                Ok(handle) if handle.append => handle.file.stat(),
                _ => return Before::Any,
            },
            FileRequest::Open { mount, path, flags } if flags.exclusive => self.stat(mount, path),
            FileRequest::MakeDirectory { mount, path, .. }
            | FileRequest::MakeLink { mount, path, .. }
            | FileRequest::RemoveDirectory { mount, path }
            | FileRequest::Remove { mount, path }
            | FileRequest::Rename { mount, from: path, .. } => self.stat(mount, path),
            _ => return Before::Any,
        };
        found.map_or(Before::Absent, |found| Before::Present { bytes: found.size })
    }

    /// Makes a change that was about to be made and may have been, when there was this before.
    pub(crate) fn call_again(
        &self,
        request: FileRequest<'_>,
        before: Before,
    ) -> Result<FileReply, FileError> {
        match (request, before) {
            (FileRequest::Write { file, offset, bytes }, Before::Present { bytes: before }) => {
                let written = self.handle(file)?.file.stat()?.size.saturating_sub(before);
                let written = usize::try_from(written).unwrap_or(usize::MAX).min(bytes.len());
                let missing = bytes.get(written..).unwrap_or_default();
                if !missing.is_empty() {
                    self.call(FileRequest::Write { file, offset, bytes: missing })?;
                }
                Ok(FileReply::Count(u32::try_from(bytes.len()).unwrap_or(u32::MAX)))
            }
            (FileRequest::Open { mount, path, flags }, Before::Absent) => {
                let flags = OpenFlags { exclusive: false, ..flags };
                self.call(FileRequest::Open { mount, path, flags })
            }
            (
                FileRequest::MakeDirectory { mount, path, .. }
                | FileRequest::MakeLink { mount, path, .. },
                Before::Absent,
            ) if self.stat(mount, path).is_ok() => Ok(FileReply::Done),
            (
                FileRequest::RemoveDirectory { mount, path }
                | FileRequest::Remove { mount, path }
                | FileRequest::Rename { mount, from: path, .. },
                Before::Present { .. },
            ) if self.stat(mount, path) == Err(FileError::NotFound) => Ok(FileReply::Done),
            (request, _) => self.call(request),
        }
    }

    fn stat(&self, mount: u32, path: &str) -> Result<FileStat, FileError> {
        let path = RelativePath::parse(path, self.limits())?;
        self.volume(mount)?.stat(path)
    }
}
