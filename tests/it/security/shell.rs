//! What a script of the shell can be, and what it reaches: no more than Python's code.

use std::time::Duration;

use isolet::{Cell, Limits, Mount, Permissions, Sandbox, SandboxBuilder};
use isolet_test_support::server::Server;

use crate::util::{Scratch, engine, root};

/// Scripts whose work has no end, or none that anybody waits for.
const ENDLESS: [&str; 32] = [
    // Expansions.
    "echo {1..100000000} | wc -c",
    "echo {1..9999}{1..9999}{1..9999} | wc -c",
    "x=a; while :; do x=$x$x; done",
    "x=$(yes | head -c 100000000); echo ${x//y/zzzzzzzzzzzzzzzz} | wc -c",
    "eval \"echo $(printf '${a:-%.0s' {1..100000})\"",
    "eval \"$(printf '(%.0s' {1..100000})\"",
    "printf '%999999999s' | wc -c",
    // Here-documents.
    "f() { cat <<E\n$(f)\nE\n}; f",
    "cat <<< \"$(cat /dev/zero)\" | wc -c",
    // Globs.
    "touch $(printf 'a%.0s' {1..50}); echo *a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
    "shopt -s extglob; [[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa == +(+(a)|a)b ]]",
    "find / | xargs -n1 find / | wc -l",
    // Arithmetic.
    "a=b; b=a; echo $((a))",
    "echo $((9**9**9)) $((1<<99999)) $((-9223372036854775808/-1))",
    "eval 'echo $((' \"$(printf '(%.0s' {1..100000})\"",
    "echo {1..9223372036854775807..9223372036854775807}; x=ab; echo ${x:$((1<<62)):$((1<<62))}",
    // Regular expressions.
    "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa =~ ^(a+)+b ]]",
    "grep -P '(a+)+$b' <<< aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac",
    "grep -E '(((a{1,1000}){1,1000}){1,1000})' <<< aaa",
    "sed ':a;s/^/x/;ta' <<< x",
    // Programs of commands.
    "awk 'BEGIN{while(1);}'",
    "awk 'BEGIN{x=\"a\"; while(1) x=x x}'",
    "jq -n 'def f: f; f'",
    "jq -n '[range(1e18)]|length'",
    // Streams, jobs and traps.
    "yes | sort",
    "sleep infinity",
    "f(){ f | f & f; }; f",
    "seq 1 1000000000000 | tail -1",
    "while read x; do echo $x; done < <(yes)",
    "trap 'while :; do :; done' EXIT; exit",
    "wait $(sleep 99999 & echo $!)",
    "dd if=/dev/zero of=f bs=1G count=100",
];

/// Longer than a run may take and what its end may: a session that has not answered by then blocks
/// its host.
const ANSWERED_WITHIN: Duration = Duration::from_mins(1);

fn builder() -> SandboxBuilder {
    let limits =
        Limits::default().max_run_time(Duration::from_millis(300)).max_memory_bytes(256 << 20);
    Sandbox::builder(engine()).limits(limits)
}

/// The verdict on `script`, in a session of its own.
async fn ends(sandbox: &Sandbox, script: &str) -> String {
    let mut session = sandbox.session().await.unwrap();
    let ran = tokio::time::timeout(ANSWERED_WITHIN, session.shell(script)).await;
    let ran = ran.unwrap_or_else(|_| panic!("no answer to {script}"));
    let ran = ran.unwrap_or_else(|error| panic!("{script}: {error}"));
    assert!(ran.usage().peak_memory_bytes <= 256 << 20, "{script}: {ran:?}");
    format!("{:?}", ran.outcome())
}

/// A26: what a script asks for without end, the session's limits end.
#[tokio::test]
async fn no_expansion_document_pattern_or_number_of_a_script_blocks_the_host() {
    let sandbox = builder().build().unwrap();
    let mut verdicts = Vec::new();
    // Two at a time, on two processors.
    for pair in ENDLESS.chunks(2) {
        let (one, other) =
            tokio::join!(ends(&sandbox, pair[0]), ends(&sandbox, pair.last().unwrap()));
        verdicts.extend([one, other]);
    }
    let terminated = verdicts.iter().filter(|verdict| verdict.contains("Terminated")).count();
    assert!(terminated >= 8, "the deadline ended {terminated} only: {verdicts:?}");
    assert!(ends(&sandbox, "echo on").await.contains("Exited"));
}

/// A generator of numbers (`SplitMix64`), so that a failure can be had again.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap() % bound
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// The scripts of the recorded cases.
fn recorded() -> Vec<String> {
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(root().join("tests/shell/cases")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for case in text.split("%% case ").skip(1) {
            let body = case.split_once('\n').map_or("", |(_, body)| body);
            scripts.push(body.split("\n%% ").next().unwrap_or_default().to_owned());
        }
    }
    scripts.sort();
    scripts
}

/// `from`, with pieces of `all` in it, pieces cut out, and characters that mean something.
fn changed(from: &str, all: &[&str], numbers: &mut Numbers) -> String {
    const ODD: [&str; 20] = [
        "$(",
        ")",
        "${",
        "}",
        "((",
        "))",
        "[[",
        "]]",
        "<<E\n",
        "|",
        "&",
        ";;",
        "\"",
        "'",
        "`",
        "\\",
        "\0",
        "\u{10ffff}",
        "-9223372036854775808",
        "{1..99999}",
    ];
    let mut script: Vec<char> = from.chars().collect();
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(script.len() + 1);
        match numbers.below(3) {
            0 => drop(script.splice(at..at, numbers.pick(&ODD).chars())),
            1 => {
                let other: Vec<char> = numbers.pick(all).chars().collect();
                let from = numbers.below(other.len() + 1);
                script.splice(at..at, other[from..].iter().copied());
            }
            _ => {
                let end = (at + numbers.below(20)).min(script.len());
                script.drain(at..end);
            }
        }
    }
    script.into_iter().collect()
}

/// A26: whatever a script is, its run ends with a verdict, and it reads and writes nothing of the
/// host's.
#[tokio::test]
async fn random_scripts_end_with_a_verdict_and_reach_nothing() {
    const SCRIPTS: usize = 400;
    let canary = Server::with_text("canary");
    let recorded = recorded();
    let all: Vec<&str> = recorded.iter().map(String::as_str).collect();
    let reaches = format!("curl -s {}; ", canary.url("/"));
    let sandbox = builder().build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let (mut numbers, mut verdicts) = (Numbers(26), [0; 2]);
    for number in 0..SCRIPTS {
        let script = changed(&format!("{reaches}{}", numbers.pick(&all)), &all, &mut numbers);
        let run = tokio::time::timeout(ANSWERED_WITHIN, session.run(Cell::shell(script.as_str())));
        let answer = run.await.unwrap_or_else(|_| panic!("script {number}, no answer: {script}"));
        let ran = answer.unwrap_or_else(|error| panic!("script {number}, {error}: {script}"));
        verdicts[usize::from(ran.session_alive())] += 1;
        if !ran.session_alive() {
            session = sandbox.session().await.unwrap();
        }
    }
    assert_eq!(canary.connections(), 0);
    assert!(verdicts[1] > SCRIPTS / 2, "few sessions lived on: {verdicts:?}");
}

/// A26: commands are code of the guest, which the host allows no more than Python's.
#[tokio::test]
async fn a_command_reaches_no_more_than_python_does() {
    let scratch = Scratch::new("shell-reach");
    let canary = scratch.file("canary.txt", "canary");
    let (shown, written) = (scratch.path().join("shown"), scratch.path().join("written"));
    for directory in [&shown, &written] {
        std::fs::create_dir(directory).unwrap();
    }
    std::os::unix::fs::symlink(&canary, written.join("link")).unwrap();
    std::fs::write(shown.join("file"), "shown").unwrap();
    let permissions = Permissions::none()
        .mount("/ro", Mount::read_only(&shown).unwrap())
        .unwrap()
        .mount("/rw", Mount::read_write(&written).unwrap())
        .unwrap();
    let sandbox = Sandbox::builder(engine()).permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let script = "cat $1 /rw/link /rw/../canary.txt /proc/self/environ /proc/1/environ 2>/dev/null
find / -name canary.txt 2>/dev/null; env | grep -i -e isolet -e cargo
echo x > /ro/file; rm -f /ro/file; mv /ro/file /tmp; touch /ro/new; chmod 777 /ro/file
ln -s $1 /rw/made; cat /rw/made; cp /rw/made /rw/copy; echo x > /rw/made
mkdir -p /tmp/t; cd /tmp/t; ln -s $1 inside; tar cf /rw/t.tar inside; tar xf /rw/t.tar -C /rw
cat /rw/inside; (exec 3< $1; cat <&3); source $1; (cd / && ls)
: > /rw/plain";
    let cell = Cell::shell(script).argv(["bash", canary.as_str()]);
    let ran = session.run(cell).await.unwrap();
    assert!(!ran.stdout().contains("canary\n"), "{}{}", ran.stdout(), ran.stderr());
    assert!(!ran.stdout().contains("canary.txt"), "{}", ran.stdout());
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), "canary");
    assert_eq!(std::fs::read_to_string(shown.join("file")).unwrap(), "shown");
    assert_eq!(std::fs::read_dir(&shown).unwrap().count(), 1);
    assert!(!std::fs::exists(written.join("copy")).unwrap_or(true), "nothing was copied");
    assert!(std::fs::exists(written.join("plain")).unwrap(), "the mount can be written");
}
