//! Tests of files: mounts as Python's own libraries use them, and the files that the owner writes
//! and reads.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;

use isolet::profile::copied_files::CopiedFiles;
use isolet::{ErrorKind, Limits, Mount, Param, Permissions, Tool, ToolSpec, Value};

use crate::util::{Scratch, builder, eval, exec, sandbox, session};

/// File operations of programs. The host's Python runs the same in the same directory.
const PROGRAM: &str = include_str!("programs/files.py");

#[tokio::test]
async fn a_writable_mount_is_a_directory_as_any_other() {
    let scratch = Scratch::new("mount-rw");
    let mount = Mount::read_write(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    let here = exec(&mut session, format!("ROOT = '/data'\n{PROGRAM}")).await;

    let other = Scratch::new("mount-python");
    let root = other.path().to_str().unwrap();
    let python = std::process::Command::new("python3")
        .args(["-c", &format!("ROOT = {root:?}\n{PROGRAM}")])
        .output()
        .unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let there = String::from_utf8(python.stdout).unwrap().replace(root, "/data");
    assert_eq!(here.stdout(), there);
    assert_eq!(fs::read(scratch.path().join("kept.txt")).unwrap(), "hé\n".as_bytes());
}

#[tokio::test]
async fn an_overlay_behaves_as_a_writable_mount_does() {
    let scratch = Scratch::new("mount-overlay");
    let mount = Mount::overlay(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    exec(&mut session, format!("ROOT = '/data'\n{PROGRAM}")).await;
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_the_host_changes_is_seen_at_once() {
    let scratch = Scratch::new("mount-live");
    scratch.file("a.txt", "one");
    let mount = Mount::read_only(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    assert_eq!(eval(&mut session, "open('/data/a.txt').read()").await, Value::from("one"));
    scratch.file("a.txt", "two, longer");
    scratch.file("b.txt", "new");
    let code = "import os\nopen('/data/a.txt').read(), sorted(os.listdir('/data'))";
    assert_eq!(eval(&mut session, code).await.to_string(), "['two, longer', ['a.txt', 'b.txt']]");
    fs::remove_file(scratch.path().join("a.txt")).unwrap();
    fs::create_dir(scratch.path().join("a.txt")).unwrap();
    assert_eq!(eval(&mut session, "os.path.isdir('/data/a.txt')").await, Value::Bool(true));
}

#[tokio::test]
async fn a_large_file_is_read_where_it_is() {
    let scratch = Scratch::new("mount-large");
    let file = fs::File::create(scratch.path().join("sparse")).unwrap();
    file.set_len(20 << 30).unwrap();
    let mount = Mount::read_only(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    let code = "import os\nf = open('/data/sparse', 'rb')\nf.seek(15 << 30)\nlen(f.read(1000)), f.tell(), os.path.getsize('/data/sparse')";
    let seen = eval(&mut session, code).await;
    assert_eq!(seen.to_string(), format!("[1000, {}, {}]", (15_u64 << 30) + 1000, 20_u64 << 30));
}

#[tokio::test]
async fn files_can_be_put_and_got_without_a_mount() {
    let mut session = session().await;
    session.files().put("/home/user/deep/in.bin", vec![0, 1, 255]).await.unwrap();
    let code = "data = open('deep/in.bin', 'rb').read()\nopen('out.txt', 'w').write('é' * 3)\ndata";
    assert_eq!(eval(&mut session, code).await, Value::Bytes(vec![0, 1, 255]));
    let files = session.files();
    assert_eq!(files.get("out.txt").await.unwrap(), Some("ééé".into()));
    assert_eq!(files.get("absent").await.unwrap(), None);
    let listed = files.list("/home/user").await.unwrap();
    let listed: Vec<_> =
        listed.iter().map(|entry| (entry.name.as_str(), entry.is_directory, entry.size)).collect();
    assert_eq!(listed[1], ("out.txt", false, 6));
    assert_eq!((listed[0].0, listed[0].1, listed.len()), ("deep", true, 2));
    assert!(files.remove("out.txt").await.unwrap());
    assert!(!files.remove("out.txt").await.unwrap());
    for failure in [
        files.get("/home/user").await.map(drop),
        files.put("/home/user", "x").await,
        files.list("/nowhere").await.map(drop),
        files.remove("/home").await.map(drop),
    ] {
        let error = failure.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Value, "{error}");
        assert!(error.session_survives());
    }
}

#[tokio::test]
async fn files_that_are_too_large_do_not_cross() {
    let limits = Limits::default().max_value_bytes(1000);
    let mut session = sandbox(limits).session().await.unwrap();
    let error = session.files().put("x", vec![0; 1001]).await.unwrap_err();
    assert!(error.to_string().contains("1001 bytes, the limit is 1000"), "{error}");
    exec(&mut session, "open('big', 'wb').write(bytes(2000))").await;
    let error = session.files().get("big").await.unwrap_err();
    assert!(error.to_string().contains("2000 bytes"), "{error}");
    assert!(error.session_survives());
    // Whatever can be put can be read back, and a byte more can be neither.
    let full = vec![7; 1000];
    session.files().put("full", full.clone()).await.unwrap();
    assert_eq!(session.files().get("full").await.unwrap(), Some(full));
    exec(&mut session, "open('full', 'ab').write(b'x')").await;
    let error = session.files().get("full").await.unwrap_err();
    assert!(error.to_string().contains("1001 bytes"), "{error}");
}

#[tokio::test]
async fn copied_files_are_written_back_if_they_may_be() {
    let scratch = Scratch::new("copied");
    let read = scratch.file("read.txt", "r");
    let write = scratch.file("write.txt", "w");
    let new = scratch.path().join("new.txt");
    let mut files =
        CopiedFiles::new([read.clone().into()], [write.clone().into(), new.clone()]).unwrap();
    let mut session = session().await;
    files.copy_in(&mut session).await.unwrap();
    exec(
        &mut session,
        "for n in ('read', 'write', 'new'): open(f'/sandbox/{n}.txt', 'a').write('!')",
    )
    .await;
    files.copy_out(&mut session).await.unwrap();
    let contents = [read.as_ref(), write.as_ref(), new.as_path()]
        .map(|path: &std::path::Path| fs::read_to_string(path).unwrap());
    assert_eq!(contents, ["r", "w!", "!"]);
    let twice = CopiedFiles::new(["/a/x".into(), "/b/x".into()], []).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn the_changes_in_an_overlay_are_listed_and_exported() {
    let scratch = Scratch::new("overlay-export");
    let dir = scratch.path().join("data");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.txt"), "a").unwrap();
    fs::write(dir.join("b.txt"), "b").unwrap();
    let permissions = Permissions::none().mount("/data", Mount::overlay(&dir).unwrap()).unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    let code = "import os\nopen('/data/a.txt', 'a').write('!')\nos.remove('/data/b.txt')\n\
        os.mkdir('/data/d')\nopen('/data/d/new.txt', 'w').write('new')";
    exec(&mut session, code).await;
    let files = session.files();
    let changes = files.changes("/data").unwrap();
    let shown: Vec<_> =
        changes.iter().map(|change| format!("{:?} {}", change.kind, change.path)).collect();
    let expected = [
        "Modified /data/a.txt",
        "Removed /data/b.txt",
        "Created /data/d",
        "Created /data/d/new.txt",
    ];
    assert_eq!(shown, expected);
    let out = scratch.path().join("out");
    assert_eq!(files.export("/data", &out).unwrap(), 2);
    assert_eq!(fs::read_to_string(out.join("a.txt")).unwrap(), "a!");
    assert_eq!(fs::read_to_string(out.join("d/new.txt")).unwrap(), "new");
    assert_eq!(fs::read_to_string(dir.join("a.txt")).unwrap(), "a");
    for refused in [files.export("/data", &out), files.export("/other", scratch.path().join("x"))] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Config);
    }
}

/// Whatever is read ahead of a file, the guest sees the contents that it can know to be there.
#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_read_as_it_is() {
    let scratch = Scratch::new("mount-ahead");
    let path = scratch.path().join("log");
    let whole = |byte: u8| vec![byte; 100_000];
    fs::write(&path, whole(b'a')).unwrap();
    let host_path = path.clone();
    // The host's action, on the guest's request.
    let act =
        Tool::from_handler(ToolSpec::new("host").param(Param::new("what")), move |given, _| {
            let what = given.as_dict().and_then(|given| given[0].1.as_str().map(str::to_owned));
            match what.as_deref() {
                Some("append") => {
                    let mut file = fs::OpenOptions::new().append(true).open(&host_path).unwrap();
                    file.write_all(b"tail").unwrap();
                }
                Some("cut") => {
                    fs::OpenOptions::new()
                        .write(true)
                        .open(&host_path)
                        .unwrap()
                        .set_len(5000)
                        .unwrap();
                }
                other => {
                    let byte = other.unwrap().as_bytes()[0];
                    let file = fs::OpenOptions::new().write(true).open(&host_path).unwrap();
                    file.write_all_at(&whole(byte), 0).unwrap();
                }
            }
            std::future::ready(Ok(Value::None))
        });
    let mount = Mount::read_write(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let sandbox = builder().permissions(permissions).tool(act).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "import os
fd = os.open('/data/log', os.O_RDONLY)
seen = [os.read(fd, 1000)[-1:] for _ in range(3)]
host('b'); seen.append(os.read(fd, 1000)[-1:])
other = os.open('/data/log', os.O_WRONLY)
os.read(fd, 1000); os.pwrite(other, b'c' * 100_000, 0); seen.append(os.read(fd, 1000)[-1:])
os.read(fd, 1000); os.lseek(fd, 0, 0); os.read(fd, 1000); host('d'); seen.append(os.pread(fd, 1000, 1000)[-1:])
print(b''.join(seen).decode())
os.lseek(fd, 0, 0)
print(sum(len(piece) for piece in iter(lambda: os.read(fd, 777), b'')), os.read(fd, 777))
host('append'); print(os.read(fd, 777), os.read(fd, 777))
os.write(other, b'x'); os.lseek(other, 0, 2); os.write(other, b'mine'); print(os.read(fd, 777), os.read(fd, 777))
os.lseek(fd, 1000, 0); os.read(fd, 1000); os.read(fd, 1000); host('cut'); print(len(os.read(fd, 5000)), os.read(fd, 10))
os.lseek(fd, 0, 0); os.read(fd, 1000); os.read(fd, 1000); os.truncate('/data/log', 3000); print(len(os.read(fd, 5000)))
os.lseek(fd, 0, 0); os.read(fd, 100); os.read(fd, 100)
os.rename('/data/log', '/data/old'); open('/data/log', 'w').write('new'); print(os.read(fd, 1))";
    let seen = exec(&mut session, code).await;
    let expected = "aaabcd\n100000 b''\nb'tail' b''\nb'mine' b''\n2000 b''\n1000\nb'd'\n";
    assert_eq!(seen.stdout(), expected);
}
