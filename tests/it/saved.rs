//! Tests of saved sessions: what is restored goes on as if nothing had happened, and a file grants
//! nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use isolet::{
    ErrorKind, Limits, Mount, Param, Permissions, Sandbox, Session, SessionState, Tool, ToolSpec,
    Value,
};

use crate::corpus::runs_alike;
use crate::util::{Scratch, builder, eval, exec, raised};
use isolet_test_support::server::{Response, Server};

fn sandbox() -> Sandbox {
    builder().build().unwrap()
}

/// Saves the session and ends it; returns it restored in the sandbox.
async fn moved(mut session: Session, sandbox: &Sandbox) -> Session {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let dir = Scratch::new(&format!("saved-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    let file = dir.path().join("session");
    session.save(&file).await.unwrap();
    drop(session);
    sandbox.restore(&file).await.unwrap()
}

#[tokio::test]
async fn a_restored_session_has_what_the_saved_one_had() {
    let sandbox = sandbox();
    let mut session = sandbox.session().await.unwrap();
    let code = "
import dataclasses, json, os, random, re, sys
@dataclasses.dataclass
class Point:
    x: int
p = Point(1)
words = {'a': ['b', 3.5, None], ('t',): {1, 2}}
os.makedirs('/tmp/work/deep')
os.chdir('/tmp/work')
with open('note', 'w') as f: f.write('before')
os.symlink('note', 'link')
opened = open('note')
opened.read(3)
gone = open('gone', 'w+')
gone.write('still here'); gone.flush(); os.remove('gone')
def numbers():
    yield from range(10)
n = numbers(); next(n); next(n)
random.seed(7)
pattern = re.compile('b+')
os.environ['OWN'] = 'kept'
inode = os.stat('note').st_ino
print('printed')
";
    exec(&mut session, code).await;
    let mut session = moved(session, &sandbox).await;
    let seen = "[p.x, repr(words), next(n), opened.read(), os.getcwd(), os.readlink('link'), \
                open('link').read(), sorted(os.listdir()), pattern.findall('abba'), \
                os.environ['OWN'], random.random(), os.stat('note').st_ino == inode, \
                (gone.seek(0), gone.read())[1], Point(3) == Point(3)]";
    let seen = eval(&mut session, seen).await.to_string();
    assert_eq!(
        seen,
        "[1, \"{'a': ['b', 3.5, None], ('t',): {1, 2}}\", 2, 'ore', '/tmp/work', 'note', 'before', \
         ['deep', 'link', 'note'], ['bb'], 'kept', 0.32383276483316237, True, 'still here', True]"
    );
    let printed = session.run("print('out'); print('err', file=sys.stderr)").await.unwrap();
    assert_eq!((printed.stdout(), printed.stderr()), ("out\n", "err\n"));
}

#[tokio::test]
async fn the_saved_session_goes_on_and_both_are_apart() {
    let (sandbox, dir) = (sandbox(), Scratch::new("saved-apart"));
    let file = dir.path().join("session");
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "x = ['saved']").await;
    session.save(&file).await.unwrap();
    exec(&mut session, "x.append('later')").await;
    let mut first = sandbox.restore(&file).await.unwrap();
    let mut second = sandbox.restore(&file).await.unwrap();
    exec(&mut first, "x.append('first')").await;
    assert_eq!(eval(&mut session, "x").await.to_string(), "['saved', 'later']");
    assert_eq!(eval(&mut first, "x").await.to_string(), "['saved', 'first']");
    assert_eq!(eval(&mut second, "x").await.to_string(), "['saved']");
}

#[tokio::test]
async fn a_restored_session_can_be_saved_again_and_again() {
    let sandbox = sandbox();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "path = []").await;
    for step in 0..5 {
        exec(&mut session, format!("path.append({step}); import ctypes, sqlite3, decimal")).await;
        session = moved(session, &sandbox).await;
    }
    assert_eq!(eval(&mut session, "path").await.to_string(), "[0, 1, 2, 3, 4]");
}

#[tokio::test]
async fn tasks_go_on_when_their_time_has_come() {
    let sandbox = sandbox();
    let mut session = sandbox.session().await.unwrap();
    let code = "
import asyncio, time
log = []
async def tick():
    for n in range(3):
        await asyncio.sleep(0.02)
        log.append(n)
task = asyncio.create_task(tick())
event = asyncio.Event()
waiter = asyncio.create_task(event.wait())
before = time.monotonic()
";
    exec(&mut session, code).await;
    let mut session = moved(session, &sandbox).await;
    assert_eq!(eval(&mut session, "time.monotonic() >= before").await, true.into());
    exec(&mut session, "event.set(); await task; await waiter").await;
    assert_eq!(eval(&mut session, "log").await.to_string(), "[0, 1, 2]");
}

#[tokio::test]
async fn callbacks_of_ctypes_and_native_modules_go_on() {
    let sandbox = sandbox();
    let mut session = sandbox.session().await.unwrap();
    let code = "
import ctypes, sqlite3, hashlib
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
calls = []
def double(x):
    calls.append(x)
    return 2 * x
native = kind(double)
db = sqlite3.connect(':memory:')
db.execute('create table t (x)'); db.execute('insert into t values (42)')
digest = hashlib.sha256(b'a')
";
    exec(&mut session, code).await;
    let mut session = moved(session, &sandbox).await;
    let seen = "[native(21), calls, db.execute('select x from t').fetchone()[0], \
                (digest.update(b'b'), digest.hexdigest()[:8])[1], kind(lambda x: x + 1)(1)]";
    assert_eq!(eval(&mut session, seen).await.to_string(), "[42, [21], 42, 'fb8e20fc', 2]");
}

#[tokio::test]
async fn an_object_of_javascript_that_cannot_be_saved_is_named_with_its_holder() {
    let sandbox = sandbox();
    let dir = Scratch::new("saved-objects");
    let file = dir.path().join("session");
    for (code, held) in [
        ("import js; box = {'in': [js.Object.new()]}", "`box` of the module `__main__`"),
        ("import js, json; json.kept = js.Array.new()", "`kept` of the module `json`"),
        ("import js; kept = js.Object.new()", "`kept` of the module `__main__`"),
        ("import js; js.added = 1", "the JavaScript global added"),
        ("import js; js.eval('setTimeout(() => 0, 100000)')", "a timer of JavaScript"),
        (
            "import threading\nlock = threading.Lock(); lock.acquire()\n\
             threading.Thread(target=lock.acquire, name='kept', daemon=True).start()",
            "have not ended: 'kept'",
        ),
        ("import os; ends = os.pipe()", "is a pipe or a socket"),
    ] {
        let mut session = sandbox.session().await.unwrap();
        exec(&mut session, code).await;
        let error = session.save(&file).await.unwrap_err();
        assert_eq!((error.kind(), error.session_survives()), (ErrorKind::Value, true), "{error}");
        assert!(error.to_string().contains(held), "{error}");
        assert_eq!(eval(&mut session, "40 + 2").await, 42.into());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{code}");
    }
}

#[tokio::test]
async fn objects_that_every_session_has_are_found_again() {
    let sandbox = sandbox();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "from js import Object, JSON, Math; import pyodide_js; keys = Object.keys")
        .await;
    let mut session = moved(session, &sandbox).await;
    let seen = "[JSON.stringify(Math.max(1, 2)), JSON.parse('[3]')[0], keys(Object.new()).length, \
                pyodide_js.version.split('.')[0]]";
    assert_eq!(eval(&mut session, seen).await.to_string(), "['2', 3, 0, '314']");
}

#[tokio::test]
async fn an_open_connection_is_an_error_with_its_address() {
    let server = Server::start(|_| Response::text(&"x".repeat(1 << 20)));
    let allowed = Permissions::none().allow_net(&server.rule()).unwrap();
    let sandbox = builder().permissions(allowed).build().unwrap();
    let dir = Scratch::new("saved-connection");
    let mut session = sandbox.session().await.unwrap();
    let url = server.url("/kept");
    let code = format!("import urllib.request as u; r = u.urlopen('{url}'); len(r.read(10))");
    exec(&mut session, code).await;
    let error = session.save(dir.path().join("session")).await.unwrap_err();
    assert!(error.to_string().contains(&url), "{error}");
    exec(&mut session, "r.close()").await;
    session.save(dir.path().join("session")).await.unwrap();
}

/// Files of mounts are not saved, so what a buffer holds for one would be written twice.
#[tokio::test]
async fn buffers_of_files_beneath_mounts_are_written_before_saving() {
    let dir = Scratch::new("saved-buffers");
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let mount = Mount::read_write(&data).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let sandbox = builder().permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "there, here = open('/data/log', 'w'), open('/tmp/log', 'w')\n\
                for file in (there, here): file.write('buffered')";
    exec(&mut session, code).await;
    assert_eq!(fs::read(data.join("log")).unwrap(), b"");
    let mut restored = moved(session, &sandbox).await;
    assert_eq!(fs::read(data.join("log")).unwrap(), b"buffered");
    let seen = eval(&mut restored, "here.close(); open('/tmp/log').read()").await;
    assert_eq!(seen, "buffered".into());
}

#[tokio::test]
async fn changes_in_overlays_are_restored_and_need_an_overlay() {
    let dir = Scratch::new("saved-overlay");
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    for name in ["changed", "removed", "moved"] {
        fs::write(data.join(name), name).unwrap();
    }
    let with = |mount: Mount| {
        let permissions = Permissions::none().mount("/data", mount).unwrap();
        builder().permissions(permissions).build().unwrap()
    };
    let overlay = with(Mount::overlay(&data).unwrap());
    let mut session = overlay.session().await.unwrap();
    let code = "
import os
os.chdir('/data')
with open('changed', 'a') as f: f.write('!')
os.remove('removed'); os.rename('moved', 'elsewhere')
os.makedirs('new/deep'); open('new/deep/file', 'w').write('made')
os.symlink('changed', 'link'); os.chmod('elsewhere', 0o600)
kept = open('elsewhere')
";
    exec(&mut session, code).await;
    let file = dir.path().join("session");
    session.save(&file).await.unwrap();
    let mut restored = overlay.restore(&file).await.unwrap();
    let seen = "[sorted(os.listdir('.')), open('link').read(), open('new/deep/file').read(), \
                kept.read(), oct(os.stat('elsewhere').st_mode)]";
    let expected = "[['changed', 'elsewhere', 'link', 'new'], 'changed!', 'made', 'moved', \
                    '0o100600']";
    assert_eq!(eval(&mut restored, seen).await.to_string(), expected);
    assert_eq!(eval(&mut session, seen).await.to_string(), expected);
    assert_eq!(fs::read(data.join("changed")).unwrap(), b"changed");
    assert!(data.join("removed").exists());
    for denied in [builder().build().unwrap(), with(Mount::read_only(&data).unwrap())] {
        let error = denied.restore(&file).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("an overlay at `/data`"), "{error}");
    }
    let small = with(Mount::overlay(&data).unwrap().quota_bytes(5));
    let error = small.restore(&file).await.unwrap_err();
    assert!(error.to_string().contains("limit 5 bytes"), "{error}");
}

#[tokio::test]
async fn a_restored_session_has_the_sandboxs_policy_and_not_its_old_one() {
    let dir = Scratch::new("saved-policy");
    fs::write(dir.path().join("secret"), "canary").unwrap();
    let ask = |answer: &'static str| {
        let spec = ToolSpec::new("ask").param(Param::new("x"));
        Tool::from_handler(spec, move |_, _| async move { Ok(Value::from(answer)) })
    };
    let permissions = Permissions::none()
        .env("GRANTED", "old")
        .mount("/data", Mount::read_only(dir.path()).unwrap())
        .unwrap();
    let rich = builder().permissions(permissions).tool(ask("old")).submit([Param::new("a")]);
    let rich = rich.build().unwrap();
    let file = dir.path().join("session");
    let mut session = rich.session().await.unwrap();
    exec(&mut session, "import os; f = open('/data/secret'); os.chdir('/data')").await;
    session.save(&file).await.unwrap();

    let mut poor = builder().build().unwrap().restore(&file).await.unwrap();
    assert_eq!(raised(&mut poor, "open('/data/secret')").await.type_name, "FileNotFoundError");
    assert_eq!(raised(&mut poor, "f.read()").await.type_name, "OSError");
    assert_eq!(eval(&mut poor, "os.getcwd()").await, "/data".into());
    let denied = raised(&mut poor, "ask(1)").await;
    assert!(denied.message.contains("ask"), "{denied}");
    let denied = raised(&mut poor, "SUBMIT(1)").await;
    assert!(!denied.message.is_empty(), "{denied}");

    let other = builder().permissions(Permissions::none().env("GRANTED", "new")).tool(ask("new"));
    let mut other = other.build().unwrap().restore(&file).await.unwrap();
    let seen = eval(&mut other, "[ask(1), os.environ['GRANTED']]").await;
    assert_eq!(seen.to_string(), "['new', 'new']");
}

#[tokio::test]
async fn a_session_that_is_larger_than_the_sandbox_allows_is_refused() {
    let dir = Scratch::new("saved-large");
    let file = dir.path().join("session");
    let mut session = sandbox().session().await.unwrap();
    exec(&mut session, "data = bytearray(200_000_000)").await;
    session.save(&file).await.unwrap();
    let limits = Limits::default().max_memory_bytes(128 << 20);
    let error = builder().limits(limits).build().unwrap().restore(&file).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Start);
    assert!(error.to_string().contains("memory"), "{error}");
    let mut large = sandbox().restore(&file).await.unwrap();
    assert_eq!(eval(&mut large, "len(data)").await, 200_000_000.into());
}

#[tokio::test]
async fn a_busy_or_closed_session_is_not_saved() {
    let dir = Scratch::new("saved-busy");
    let file = dir.path().join("session");
    let mut session = sandbox().session().await.unwrap();
    exec(&mut session, "import os").await;
    session.run("os._exit(3)").await.unwrap();
    assert_eq!(session.state(), SessionState::Exited);
    assert_eq!(session.save(&file).await.unwrap_err().kind(), ErrorKind::Closed);
    let mut session = sandbox().session().await.unwrap();
    let nowhere = session.save(dir.path().join("none/session")).await.unwrap_err();
    assert_eq!((nowhere.kind(), nowhere.session_survives()), (ErrorKind::Config, true));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Saves a small session to a file in `dir`.
async fn saved(dir: &Path) -> PathBuf {
    let file = dir.join("session");
    let mut session = sandbox().session().await.unwrap();
    exec(&mut session, "x = 1; open('note', 'w').write('text')").await;
    session.save(&file).await.unwrap();
    file
}

#[tokio::test]
async fn a_file_is_replaced_as_a_whole_and_only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;

    let dir = Scratch::new("saved-file");
    let file = saved(dir.path()).await;
    let again = saved(dir.path()).await;
    assert_eq!(file, again);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn another_version_is_refused_with_both_and_damage_is_found() {
    let dir = Scratch::new("saved-damage");
    let file = saved(dir.path()).await;
    let whole = fs::read(&file).unwrap();
    let restored = async |bytes: &[u8]| {
        let file = dir.path().join("other");
        fs::write(&file, bytes).unwrap();
        sandbox().restore(file).await.map(drop).unwrap_err()
    };
    let mut other = whole.clone();
    other[16..21].copy_from_slice(b"9.8.7");
    let error = restored(&other).await.to_string();
    assert!(error.contains("9.8.7") && error.contains(env!("CARGO_PKG_VERSION")), "{error}");
    for length in [0, 10, 40, 60, whole.len() / 2, whole.len() - 1] {
        assert_eq!(restored(&whole[..length]).await.kind(), ErrorKind::Config, "{length}");
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(restored(&longer).await.to_string().contains("damaged"));
    assert!(restored(b"print('no session')").await.to_string().contains("no saved session"));
    assert_eq!(sandbox().restore(dir.path()).await.unwrap_err().kind(), ErrorKind::Config);
}

/// Returns a file with this as the host's part, and with the right digest.
fn file_of(whole: &[u8], state: &[u8]) -> Vec<u8> {
    let length = (state.len() as u64).to_le_bytes();
    let mut file = [&whole[..48], &length, state].concat();
    file.extend_from_slice(blake3::hash(&file).as_bytes());
    file
}

/// A name takes a byte in the file and 24 in memory.
#[tokio::test]
async fn lists_of_a_saved_session_are_counted_before_they_are_read() {
    let dir = Scratch::new("saved-lists");
    let whole = fs::read(saved(dir.path()).await).unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let mount = Mount::overlay(&data).unwrap().quota_bytes(1 << 20).quota_files(10);
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let sandbox = builder().permissions(permissions).build().unwrap();
    // 2,000,000, as postcard writes it.
    let many = [0x80, 0x89, 0x7a];
    let overlay = [&[0, 0, 1, 5][..], b"/data", &[0; 4]].concat();
    let cases = [
        (Vec::new(), "packages of the image: limit 1000, needed 2000000"),
        (vec![0], "loaded packages: limit 1000, needed 2000000"),
        (overlay.clone(), "chunks of their files: limit 100036, needed 2000000"),
        // An entry `f` that is a file of no bytes, and its chunks.
        (
            [&overlay[..], &[1, 1, b'f', 1, 0]].concat(),
            "chunks of their files: limit 100036, needed 2000001",
        ),
    ];
    for (before, expected) in cases {
        let file = dir.path().join("crafted");
        let state = [before, many.to_vec(), vec![0; 6_000_000]].concat();
        fs::write(&file, file_of(&whole, &state)).unwrap();
        let error = sandbox.restore(&file).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let error = error.to_string();
        assert!(error.contains(expected) && error.len() < 500, "{error}");
    }
    // As many as there may be are not all named.
    let file = dir.path().join("crafted");
    fs::write(&file, file_of(&whole, &[&[0xe8, 7][..], &[0; 1002]].concat())).unwrap();
    let error = sandbox.restore(&file).await.unwrap_err().to_string();
    assert!(error.contains(", and 980 more") && error.len() < 500, "{error}");
}

/// Whoever can write the file can make its digest right as well.
#[tokio::test]
async fn bytes_that_were_changed_with_the_digest_harm_nobody() {
    const TRIES: usize = 120;
    let dir = Scratch::new("saved-flipped");
    let whole = fs::read(saved(dir.path()).await).unwrap();
    let contents = whole.len() - 32;
    let limits = Limits::default().max_run_time(std::time::Duration::from_secs(5));
    let sandbox = builder().limits(limits).build().unwrap();
    let file = dir.path().join("flipped");
    let mut restored = 0;
    for nth in 0..TRIES {
        let mut flipped = whole.clone();
        // The beginning, where lengths are, and all of the rest.
        let at = if nth < TRIES / 2 { 48 + nth * 3 } else { contents * nth / TRIES };
        flipped[at] ^= 1 << (nth % 8);
        let digest = *blake3::hash(&flipped[..contents]).as_bytes();
        flipped[contents..].copy_from_slice(&digest);
        fs::write(&file, flipped).unwrap();
        if let Ok(mut session) = sandbox.restore(&file).await {
            // It may end in any way.
            drop(session.run("x + 1").await);
            restored += 1;
        }
        let mut other = sandbox.session().await.unwrap();
        assert_eq!(eval(&mut other, "40 + 2").await, 42.into());
    }
    assert!(restored < TRIES, "nothing was refused");
}

#[tokio::test]
async fn the_corpus_runs_in_a_restored_session_as_in_a_fresh_one() {
    let dir = Scratch::new("saved-corpus");
    let sandbox = sandbox();
    let file = dir.path().join("session");
    let mut session = sandbox.session().await.unwrap();
    session.save(&file).await.unwrap();
    // A program that takes nothing from chance or time does the same in a deterministic session.
    let deterministic = builder().deterministic(7, SystemTime::now()).build().unwrap();
    runs_alike(&deterministic, async || sandbox.restore(&file).await.unwrap()).await;
}

#[tokio::test]
async fn a_session_that_was_restored_is_forked_like_any_other() {
    if crate::util::isolation() == isolet::Isolation::Thread {
        return;
    }
    let sandbox = builder().forkable(2).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "x = [1]").await;
    let mut session = moved(session, &sandbox).await;
    let mut copy = session.fork().await.unwrap();
    exec(&mut copy, "x.append(2)").await;
    let mut copy = moved(copy, &sandbox).await;
    assert_eq!(eval(&mut copy, "x").await.to_string(), "[1, 2]");
    assert_eq!(eval(&mut session, "x").await, Value::List(vec![1.into()]));
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_without_waiting_for_it() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let dir = Scratch::new("saved-fifo");
    let fifo = dir.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for path in [fifo.as_path(), dir.path()] {
        let error = sandbox().restore(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().ends_with("it is not a regular file"), "{error}");
    }
}

/// A guest that may write to a directory on the path cannot have the file written elsewhere.
#[tokio::test]
async fn a_session_is_not_saved_through_what_its_guest_has_put_on_the_path() {
    let scratch = Scratch::new("saved-links");
    let (mount, other) = (scratch.path().join("m"), scratch.path().join("other"));
    fs::create_dir_all(mount.join("sub")).unwrap();
    fs::create_dir(&other).unwrap();
    fs::write(other.join("session"), "canary").unwrap();
    std::os::unix::fs::symlink(&other, mount.join("out")).unwrap();
    let permissions = Permissions::none().mount("/m", Mount::read_write(&mount).unwrap()).unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    exec(&mut session, "import os; os.rmdir('/m/sub'); os.symlink('out', '/m/sub')").await;
    for way in ["sub/session", "out/session", "../other/../m/sub/session"] {
        let error = session.save(mount.join(way)).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("a directory that the code may write to"), "{way}: {said}");
    }
    // The session lives on, and is saved where no link leads out.
    session.save(mount.join("session")).await.unwrap();
    assert_eq!(fs::read_to_string(other.join("session")).unwrap(), "canary");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
}
