//! Tests of error numbers: Linux's, in the module `errno`, in exceptions from any source, and in
//! messages.

use std::fs;

use isolet::{Mount, Permissions};

use crate::util::{Scratch, builder, exec, session};

/// Operations that fail in a directory, and all numbers.
const PROGRAM: &str = include_str!("programs/errnos.py");

fn by_python(scratch: &Scratch) -> String {
    let root = scratch.path().to_str().unwrap();
    let python = std::process::Command::new("python3")
        .args(["-c", &format!("ROOT = {root:?}\n{PROGRAM}")])
        .output()
        .unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    String::from_utf8(python.stdout).unwrap().replace(root, "/data")
}

#[tokio::test]
async fn failures_have_the_classes_numbers_and_messages_that_they_have_on_linux() {
    let expected = by_python(&Scratch::new("errnos-python"));
    for kind in ["rw", "overlay", "own"] {
        let scratch = Scratch::new(&format!("errnos-{kind}"));
        let mount = match kind {
            "rw" => Mount::read_write(scratch.path()),
            _ => Mount::overlay(scratch.path()),
        };
        let permissions = match kind {
            "own" => Permissions::none(),
            _ => Permissions::none().mount("/data", mount.unwrap()).unwrap(),
        };
        let sandbox = builder().permissions(permissions).build().unwrap();
        let mut session = sandbox.session().await.unwrap();
        let seen = exec(&mut session, format!("ROOT = '/data'\n{PROGRAM}")).await;
        assert_eq!(seen.stdout(), expected, "{kind}");
    }
}

#[tokio::test]
async fn what_a_mount_denies_is_number_13() {
    let scratch = Scratch::new("errnos-denied");
    scratch.file("file", "text");
    let mount = Mount::read_only(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    let code = "import os, errno
for name in ('file', 'new'):
    try: open(f'/data/{name}', 'w')
    except PermissionError as error: print(error, error.errno == errno.EACCES)
try: os.remove('/data/file')
except OSError as error: print(repr(error), error.filename)";
    let seen = exec(&mut session, code).await;
    let expected = "[Errno 13] Permission denied: '/data/file' True\n\
        [Errno 13] Permission denied: '/data/new' True\n\
        PermissionError(13, 'Permission denied') /data/file\n";
    assert_eq!(seen.stdout(), expected);
    assert_eq!(fs::read_to_string(scratch.path().join("file")).unwrap(), "text");
}

/// Linux's number of `EFBIG` is WASI's number of `EINTR`, after which C code tries again.
#[tokio::test]
async fn what_is_tried_again_after_an_interruption_is_not_tried_again_after_another_error() {
    let mut session = session().await;
    let code = "import errno, io
class Raw(io.RawIOBase):
    def __init__(self, *numbers): self.numbers, self.calls = list(numbers), 0
    def writable(self): return True
    def write(self, data):
        self.calls += 1
        if self.numbers: raise OSError(self.numbers.pop(0), 'refused')
        return len(data)
interrupted = Raw(errno.EINTR, errno.EINTR)
with io.BufferedWriter(interrupted) as file: file.write(b'x' * 1_000_000)
large = Raw(*[errno.EFBIG] * 3)
file = io.BufferedWriter(large)
try: file.write(b'x' * 1_000_000)
except OSError as error: refused = error.errno
interrupted.calls, refused, large.calls, len(large.numbers)";
    let seen = session.run(code).await.unwrap();
    assert_eq!(seen.value().map(ToString::to_string).as_deref(), Some("[3, 27, 1, 2]"), "{seen:?}");
}

#[tokio::test]
async fn a_new_session_has_linux_numbers_from_its_first_line() {
    let mut session = session().await;
    let code = "import errno, os\ntry: os.stat('/none')\nexcept OSError as error: seen = error\n\
        type(seen).__name__, seen.errno, errno.ENOENT, errno.errorcode[13]";
    let seen = session.run(code).await.unwrap();
    assert_eq!(seen.value().unwrap().to_string(), "['FileNotFoundError', 2, 2, 'EACCES']");
}
