//! Tests of changes that were about to be made when the process ended, and may have been.

use super::*;

impl Guest {
    /// Makes a change twice: the process has ended after the first time if it `was_made`.
    fn make_again(&self, request: FileRequest<'_>, was_made: bool) -> Result<FileReply, FileError> {
        let before = self.files.before(&request);
        if was_made {
            let _ = self.files.call(request);
        }
        self.files.call_again(request, before)
    }
}

#[test]
fn a_change_that_was_made_is_not_made_twice_and_succeeds_as_it_did() {
    for was_made in [false, true] {
        let guest = Guest::new(read_write);
        guest.write("log", "one\n").unwrap();
        let file = guest.open("log", APPEND).unwrap();
        let write =
            |bytes| guest.make_again(FileRequest::Write { file, offset: 9, bytes }, was_made);
        assert_eq!(write(b"two\n"), Ok(FileReply::Count(4)));
        assert_eq!(write(b"three\n"), Ok(FileReply::Count(6)));
        assert_eq!(guest.read("log").unwrap(), "one\ntwo\nthree\n");
        let (mount, mode) = (0, 0o777);
        let flags = OpenFlags { exclusive: true, ..CREATE };
        let open = guest.make_again(FileRequest::Open { mount, path: "new", flags }, was_made);
        assert!(matches!(open, Ok(FileReply::File(_))));
        for request in [
            FileRequest::MakeDirectory { mount, path: "made", mode },
            FileRequest::MakeLink { mount, path: "link", target: "new" },
            FileRequest::Rename { mount, from: "new", to: "hello.txt" },
            FileRequest::Remove { mount, path: "link" },
            FileRequest::RemoveDirectory { mount, path: "made" },
            FileRequest::SetSize { mount, path: "log", size: 3 },
        ] {
            assert_eq!(guest.make_again(request, was_made), Ok(FileReply::Done), "{request:?}");
        }
        assert_eq!(guest.list("").unwrap(), ["dir", "hello.txt", "log"]);
        assert_eq!(guest.read("log").unwrap(), "one");
        assert_eq!(guest.read("hello.txt").unwrap(), "");
    }
}

#[test]
fn a_write_that_was_made_in_part_is_completed() {
    let guest = Guest::new(read_write);
    guest.write("log", "one\n").unwrap();
    let file = guest.open("log", APPEND).unwrap();
    let request = FileRequest::Write { file, offset: 0, bytes: b"two\n" };
    let before = guest.files.before(&request);
    guest.append("log", "tw").unwrap();
    assert_eq!(guest.files.call_again(request, before), Ok(FileReply::Count(4)));
    assert_eq!(guest.read("log").unwrap(), "one\ntwo\n");
}

#[test]
fn a_change_that_failed_fails_again() {
    for was_made in [false, true] {
        let guest = Guest::new(read_write);
        let (mount, mode) = (0, 0o777);
        let flags = OpenFlags { exclusive: true, ..CREATE };
        for request in [
            FileRequest::MakeDirectory { mount, path: "dir", mode },
            FileRequest::MakeLink { mount, path: "hello.txt", target: "dir" },
            FileRequest::Open { mount, path: "hello.txt", flags },
        ] {
            assert_eq!(guest.make_again(request, was_made), Err(FileError::Exists), "{request:?}");
        }
        for request in [
            FileRequest::Remove { mount, path: "none" },
            FileRequest::RemoveDirectory { mount, path: "none" },
            FileRequest::Rename { mount, from: "none", to: "hello.txt" },
        ] {
            assert_eq!(
                guest.make_again(request, was_made),
                Err(FileError::NotFound),
                "{request:?}"
            );
        }
    }
}
