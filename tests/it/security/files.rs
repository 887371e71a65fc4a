//! Part B of the threat table: files beneath mount points, and a guest's attempts to get out of
//! them. `src/fs/tests` contains the tests of races and of the spellings of paths.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use isolet::{ErrorKind, Limits, Mount, Permissions, Session, Value};

use isolet_test_support::mounted_tree::{CANARY, snapshot, world};

use crate::util::{Scratch, assets_dir, builder, eval, exec, raised};

async fn with(permissions: Permissions) -> Session {
    builder().permissions(permissions).build().unwrap().session().await.unwrap()
}

async fn mounted(mount: Mount) -> Session {
    with(Permissions::none().mount("/data", mount).unwrap()).await
}

/// B1: no link leads out of a mount, whoever created it.
#[tokio::test]
async fn links_do_not_lead_out_of_a_mount() {
    let (scratch, root) = world("links");
    let secret = scratch.path().join("secret.txt");
    symlink(&secret, root.join("absolute")).unwrap();
    symlink("../secret.txt", root.join("relative")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("relative", root.join("chain")).unwrap();
    symlink(scratch.path(), root.join("dir")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    symlink("a.txt", root.join("inside")).unwrap();
    for mount in [Mount::read_only(&root), Mount::overlay(&root), Mount::read_write(&root)] {
        let mut session = mounted(mount.unwrap()).await;
        for path in [
            "absolute",
            "relative",
            "up/secret.txt",
            "chain",
            "dir/secret.txt",
            "sub/../../secret.txt",
            "magic/etc/passwd",
            "sub/../up/secret.txt",
            "../secret.txt",
        ] {
            let read = session.run(format!("open('/data/{path}').read()")).await.unwrap();
            assert!(!format!("{read:?}").contains(CANARY), "{path}: {read:?}");
            // Some of these are the guest's own files, which it may write.
            session.run(format!("open('/data/{path}', 'w').write('overwritten')")).await.unwrap();
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), CANARY);
        assert_eq!(eval(&mut session, "open('/data/inside').read()").await, Value::from("hello"));
        for target in
            [secret.to_str().unwrap(), "../secret.txt", "/etc/passwd", "sub/../../secret.txt"]
        {
            let code = format!(
                "import os\ntry:\n    os.symlink({target:?}, '/data/made')\n    print(open('/data/made').read())\n\
                 except OSError as e: pass\nelse: raise SystemExit('followed')\n"
            );
            exec(&mut session, code).await;
        }
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), CANARY);
}

/// B12: whatever the guest renames, the host's writes to a path in the mount stay in the mount.
#[tokio::test]
async fn nothing_that_is_renamed_leads_the_host_out_of_a_mount() {
    let (scratch, root) = world("renames");
    let secret = scratch.path().join("secret.txt");
    symlink(&secret, root.join("absolute")).unwrap();
    fs::create_dir_all(root.join("deep/er")).unwrap();
    symlink("../../secret.txt", root.join("deep/er/relative")).unwrap();
    let mut session = mounted(Mount::read_write(&root).unwrap()).await;
    for code in [
        "os.rename('absolute', 'a.txt')",
        "os.rename('absolute', 'new.txt')",
        "os.rename('deep/er/relative', 'new.txt')",
        "os.rename('deep/er', 'new')",
        "os.rename('deep', 'new')",
        "shutil.move('deep/er', 'sub')",
    ] {
        let code = format!(
            "import os, shutil\nos.chdir('/data')\ntry: {code}\nexcept (OSError, shutil.Error): print('refused')\n\
             os.chdir('/')"
        );
        assert_eq!(exec(&mut session, code.clone()).await.stdout(), "refused\n", "{code}");
    }
    let mut pending = vec![root.clone()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            if kind.is_dir() {
                pending.push(path);
            } else if !path.ends_with("absolute") && !path.ends_with("deep/er/relative") {
                fs::write(path, "written by the host").unwrap();
            }
        }
    }
    for name in ["a.txt", "new.txt", "new/relative", "new/er/relative", "sub/er/relative"] {
        let path = root.join(name);
        if path.parent().unwrap().is_dir() {
            fs::write(path, "written by the host").unwrap();
        }
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), CANARY);
}

/// B3: mounting system directories needs a `dangerous_` constructor, and links to them lead
/// nowhere.
#[test]
fn dangerous_roots_are_refused() {
    let home = std::env::home_dir().unwrap();
    for root in ["/", "/proc", "/proc/self", "/sys", "/dev", "/etc", home.to_str().unwrap()] {
        for mount in [Mount::read_only(root), Mount::overlay(root), Mount::read_write(root)] {
            let error = mount.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{root}");
            assert!(error.to_string().starts_with("cannot mount"), "{error}");
        }
    }
    let scratch = Scratch::new("disguised");
    symlink("/proc/self", scratch.path().join("innocent")).unwrap();
    assert!(Mount::read_only(scratch.path().join("innocent")).is_err());
}

/// B4: only regular files, directories and links are opened, and nothing waits for any other file.
#[tokio::test]
async fn special_files_are_not_opened() {
    let (_scratch, root) = world("special");
    let fifo = root.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    symlink("/dev/zero", root.join("device")).unwrap();
    for mount in [Mount::read_only(&root), Mount::read_write(&root)] {
        let mut session = mounted(mount.unwrap()).await;
        for name in ["fifo", "socket", "device"] {
            raised(&mut session, format!("open('/data/{name}', 'rb').read(1)")).await;
            raised(&mut session, format!("open('/data/{name}', 'wb').write(b'x')")).await;
        }
        assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2));
    }
}

/// B5: mounts do not overlap, in the guest or on the host. G8: a guest that writes to the assets
/// would write machine code for later sessions.
#[test]
fn the_directory_of_the_assets_is_not_mounted_to_be_written_to() {
    let build = |mount| {
        let permissions = Permissions::none().mount("/data", mount).unwrap();
        builder().permissions(permissions).build()
    };
    let assets = assets_dir();
    for directory in [assets.as_path(), assets.parent().unwrap()] {
        let error = build(Mount::read_write(directory).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains(assets.to_str().unwrap()), "{error}");
        build(Mount::read_only(directory).unwrap()).unwrap();
        build(Mount::overlay(directory).unwrap()).unwrap();
    }
}

#[test]
fn overlapping_mounts_are_refused() {
    let (scratch, root) = world("overlap");
    let ro = |path: &Path| Mount::read_only(path).unwrap();
    let rw = |path: &Path| Mount::read_write(path).unwrap();
    let base = || Permissions::none().mount("/data", ro(&root)).unwrap();
    for guest in [
        "/data",
        "/data/sub",
        "/data/",
        "relative",
        "/",
        "/lib",
        "/lib/x",
        "/proc/x",
        "/dev",
        "/a/../b",
        "/a//b",
        "",
    ] {
        let error = base().mount(guest, ro(scratch.path())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{guest:?}");
    }
    assert!(base().mount("/other", rw(&root)).is_err(), "the same directory");
    assert!(base().mount("/other", rw(&root.join("sub"))).is_err(), "one inside");
    assert!(base().mount("/other", rw(scratch.path())).is_err(), "one around");
    symlink(&root, scratch.path().join("alias")).unwrap();
    assert!(base().mount("/other", rw(&scratch.path().join("alias"))).is_err(), "an alias");
    assert!(base().mount("/other", ro(&root.join("sub"))).is_ok(), "both read-only");
}

/// B6: a path has only the meaning that it has in Python.
#[tokio::test]
async fn odd_spellings_of_a_path_do_not_get_out() {
    let (_scratch, root) = world("spelling");
    let mut session = mounted(Mount::read_only(&root).unwrap()).await;
    for path in [
        "/data/../data/../secret.txt",
        "/data/./../secret.txt",
        "/data//../secret.txt",
        "/data/%2e%2e/secret.txt",
        "/data/..\\\\secret.txt",
        "/data/\\u2024\\u2024/secret.txt",
        "/data/a.txt/../../secret.txt",
        "/data/. ./secret.txt",
        "/data/.../secret.txt",
    ] {
        raised(&mut session, format!("open('{path}').read()")).await;
    }
    raised(&mut session, "open('/data/a.txt\\0.png').read()").await;
    raised(&mut session, "open('/data/' + 'x' * 5000).read()").await;
    raised(&mut session, "open('/data/' + 'd/' * 3000 + 'x').read()").await;
}

/// B7: a read-only mount and an overlay leave the host's tree unchanged, byte for byte.
#[tokio::test]
async fn an_overlay_leaves_the_hosts_tree_as_it_was() {
    let (_scratch, root) = world("overlay");
    let before = snapshot(&root);
    let changes = "import os, shutil\n\
        open('/data/new.txt', 'w').write('new')\nopen('/data/a.txt', 'a').write(' world')\n\
        os.remove('/data/sub/b.txt')\nos.makedirs('/data/x/y')\nos.rename('/data/sub', '/data/x/sub')\n\
        os.symlink('new.txt', '/data/link')\nos.chmod('/data/a.txt', 0o777)\nos.utime('/data/a.txt', (1, 1))\n\
        os.truncate('/data/a.txt', 7)";
    let mut session = mounted(Mount::overlay(&root).unwrap()).await;
    exec(&mut session, changes).await;
    let seen = eval(
        &mut session,
        "open('/data/a.txt').read(), sorted(os.listdir('/data')), open('/data/link').read()",
    )
    .await;
    assert_eq!(seen.to_string(), "['hello w', ['a.txt', 'link', 'new.txt', 'x'], 'new']");
    assert_eq!(snapshot(&root), before);
    let mut other = mounted(Mount::overlay(&root).unwrap()).await;
    assert_eq!(eval(&mut other, "open('/data/a.txt').read()").await, Value::from("hello"));
    let mut reader = mounted(Mount::read_only(&root).unwrap()).await;
    for code in [
        "open('/data/x', 'w')",
        "open('/data/a.txt', 'a')",
        "open('/data/a.txt', 'r+')",
        "import os; os.remove('/data/a.txt')",
        "os.mkdir('/data/d')",
        "os.rename('/data/a.txt', '/data/c.txt')",
        "os.rmdir('/data/sub')",
        "os.symlink('a.txt', '/data/l')",
        "os.truncate('/data/a.txt', 0)",
        "os.utime('/data/a.txt', (1, 1))",
        "os.chmod('/data/a.txt', 0o777)",
    ] {
        let exception = raised(&mut reader, code).await;
        assert_eq!(exception.type_name, "PermissionError", "{code}");
    }
    assert_eq!(snapshot(&root), before);
}

/// B7: files that a guest writes do not become executable.
#[tokio::test]
async fn written_files_are_not_executable() {
    use std::os::unix::fs::PermissionsExt;
    let (_scratch, root) = world("modes");
    let mut session = mounted(Mount::read_write(&root).unwrap()).await;
    exec(
        &mut session,
        "import os\nopen('/data/run.sh', 'w').write('#!/bin/sh')\nos.chmod('/data/run.sh', 0o4777)",
    )
    .await;
    let mode = fs::metadata(root.join("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7111, 0, "{mode:o}");
}

/// B8: writing is limited, and exceeding the limit is an error that Python knows.
#[tokio::test]
async fn quotas_hold_for_bytes_and_files() {
    let (_scratch, root) = world("quota");
    for mount in [Mount::read_write(&root), Mount::overlay(&root)] {
        let mut session = mounted(mount.unwrap().quota_bytes(100_000).quota_files(20)).await;
        let code = "import os\nwritten = 0\n\
            with open('/data/big', 'wb', buffering=0) as f:\n    try:\n        while True: written += f.write(b'x' * 10_000)\n\
            \x20   except OSError as e: error = e\nwritten, type(error).__name__";
        let seen = eval(&mut session, code).await;
        let written = seen.as_list().unwrap()[0].as_i64().unwrap();
        assert!(written <= 100_000, "{seen}");
        let code = "made = 0\ntry:\n    for made in range(1000): open(f'/data/f{made}', 'w').close()\nexcept OSError as e: pass\nmade";
        let made = eval(&mut session, code).await.as_i64().unwrap();
        assert!(made <= 20, "{made}");
        exec(&mut session, "for n in os.listdir('/data'):\n    if n != 'sub' and n != 'a.txt': os.remove('/data/' + n)").await;
    }
}

/// B10: nothing that the guest can read contains a host path.
#[tokio::test]
async fn paths_of_the_host_are_not_told() {
    let (scratch, root) = world("disclosure");
    symlink(scratch.path().join("secret.txt"), root.join("absolute")).unwrap();
    let hidden = scratch.path().to_str().unwrap().to_owned();
    for mount in [Mount::read_only(&root), Mount::overlay(&root), Mount::read_write(&root)] {
        let mut session = mounted(mount.unwrap()).await;
        let code = "import os, pathlib, traceback\nsaid = []\n\
            def attempt(f, *args):\n    try: said.append(repr(f(*args)))\n    except BaseException: said.append(traceback.format_exc())\n\
            for p in ['/data', '/data/absolute', '/data/none', '/data/a.txt', '/data/sub/../..']:\n\
            \x20   for f in (os.stat, os.lstat, os.readlink, os.path.realpath, os.listdir, open, os.rmdir, os.statvfs, lambda p: pathlib.Path(p).resolve(strict=True)): attempt(f, p)\n\
            said.append(open('/proc/self/mounts').read() if os.path.exists('/proc/self/mounts') else '')\nstr(said)";
        let said = eval(&mut session, code).await;
        assert!(!said.as_str().unwrap().contains(&hidden), "{said}");
    }
}

/// B11: nothing remains on the host when a session has ended.
#[tokio::test]
async fn an_overlay_ends_with_its_session() {
    let (scratch, root) = world("leftovers");
    let before = snapshot(scratch.path());
    let sandbox = builder()
        .permissions(Permissions::none().mount("/data", Mount::overlay(&root).unwrap()).unwrap())
        .limits(Limits::default())
        .build()
        .unwrap();
    let mut one = sandbox.session().await.unwrap();
    exec(&mut one, "open('/data/planted', 'w').write('x')").await;
    drop(one);
    let mut two = sandbox.session().await.unwrap();
    let listed = eval(&mut two, "import os\nsorted(os.listdir('/data'))").await;
    assert_eq!(listed, Value::from(vec!["a.txt", "sub"]));
    assert_eq!(snapshot(scratch.path()), before);
}
