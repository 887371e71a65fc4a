//! Tests of saved sessions: what is restored goes on as if nothing had happened, and a file grants
//! nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use isolet::{Sandbox, Session};

use crate::util::{Scratch, builder, eval, exec};

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
