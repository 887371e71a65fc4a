//! Tests of the completion of names.

use crate::util::{eval, exec, session};

#[tokio::test]
async fn names_and_attributes_are_completed() {
    let mut session = session().await;
    let code = "import os\nclass Point:\n    __slots__ = ('xs', '_hidden')\n    def xmax(self): pass\n\
                class Box:\n    def __init__(self): self.content = Point(); self.content.xs = [1]\n\
                box = Box()\nboxes = {}";
    exec(&mut session, code).await;
    for (text, names) in [
        ("bo", &["bool", "box", "boxes"][..]),
        ("os.path.join", &["join"]),
        ("os.getcw", &["getcwd", "getcwdb"]),
        ("box.con", &["content"]),
        ("box.content.x", &["xmax", "xs"]),
        ("box.content._h", &["_hidden"]),
        ("box.content.xs.app", &["append"]),
        ("Point.xm", &["xmax"]),
        ("impo", &["import"]),
        ("nothing.x", &[]),
        ("box.nothing.x", &[]),
        ("", &[]),
    ] {
        let found = session.complete(text).await.unwrap();
        if text.is_empty() {
            assert!(found.contains(&"box".to_owned()) && !found.contains(&"__name__".to_owned()));
        } else {
            assert_eq!(found, names, "{text}");
        }
    }
}

/// Pressing a key must neither change anything nor take forever.
#[tokio::test]
async fn no_code_of_the_guest_runs_for_a_completion() {
    let mut session = session().await;
    let code = "ran = []\nclass Meta(type):\n    def __dir__(self): ran.append('meta dir'); return []\n\
        class Trap(metaclass=Meta):\n\
        \x20   def __dir__(self): ran.append('dir'); return ['x']\n\
        \x20   def __getattr__(self, name): ran.append(name)\n\
        \x20   def __getattribute__(self, name): ran.append(name); return object()\n\
        \x20   @property\n\
        \x20   def computed(self): ran.append('computed'); return self\n\
        \x20   plain = 1\n\
        trap = Trap()";
    exec(&mut session, code).await;
    for (text, names) in [
        ("trap.pl", &["plain"][..]),
        ("trap.computed.x", &[]),
        ("trap.comp", &["computed"]),
        ("Trap.pl", &["plain"]),
    ] {
        assert_eq!(session.complete(text).await.unwrap(), names, "{text}");
    }
    assert_eq!(eval(&mut session, "ran").await.as_list(), Some(&[][..]));
}
