//! Makes the programs that are killed: random ones, and those of the corpus with calls in between.

use std::fs;
use std::path::PathBuf;

use crate::util::root;

/// Numbers that look random and are the same each time.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        let mut numbers = Self(seed);
        // Seeds that follow each other begin alike.
        numbers.below(2);
        numbers.0 ^= seed << 40;
        numbers
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % limit
    }
}

/// A program, and how its session is made.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) source: String,
    /// The seed of its entropy and clocks, if these are virtual.
    pub(super) seed: Option<u64>,
}

/// What the programs begin with. Each effect has a number of its own. A call that may have been
/// carried out raises an exception, and `settle` says whether it was, or makes up for it.
const FIRST: &str = "
import asyncio, http.client, os, random, signal, sys, time, urllib.request
from concurrent.futures import ThreadPoolExecutor

def once(n):
    try: return act(n)
    except CallInterrupted: return settle(n)

async def once_async(n):
    try: return await act.aio(n)
    except CallInterrupted: return await settle.aio(n)

async def together(numbers):
    async def one(place, n):
        await asyncio.sleep(0.001 * (place % 3))
        return await once_async(n)
    return await asyncio.gather(*(one(*each) for each in enumerate(numbers)))

def fetch(path, body=None):
    with urllib.request.urlopen(SERVER + path, body) as response:
        return response.read().decode()

def fetched(path):
    while True:
        try: return fetch(path)
        except (CallInterrupted, OSError, http.client.HTTPException): pass

def posted(n):
    try: return fetch(f'/act/{n}', b'body')
    except (CallInterrupted, OSError, http.client.HTTPException): return fetched(f'/settle/{n}')

def in_threads(numbers):
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(once, numbers))

rang = 0
def rings(*_):
    global rang
    rang += 1
signal.signal(signal.SIGALRM, rings)

def alarm():
    before = rang
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    while rang == before: pass
    return rang

class Steps:
    taken = []
    def step(self, n):
        self.taken.append(once(n))
        return self.taken[-3:]
steps = Steps()
values = (once(n) for n in range(900, 999))
";

/// Returns a random program.
pub(super) fn random(nth: u64, server: &str) -> Program {
    let mut numbers = Numbers::new(nth);
    let seed = (nth.is_multiple_of(2)).then_some(nth);
    let mut source = format!("SERVER = {server:?}\n{FIRST}");
    for place in 0..numbers.below(16) + 5 {
        source.push_str(&statement(&mut numbers, 10 * place, seed.is_some()));
        source.push('\n');
    }
    source.push_str("rang, steps.taken");
    Program { name: format!("random {nth}"), source, seed }
}

/// Returns a statement, whose effects have numbers from `n` to `n` + 9.
fn statement(numbers: &mut Numbers, n: u64, has_seed: bool) -> String {
    let few = numbers.below(4) + 2;
    match numbers.below(22) {
        0 | 1 => format!("print(once({n}))"),
        2 => format!("print(look({n}))"),
        3 => format!("print(asyncio.run(together(range({n}, {}))))", n + few),
        4 => format!("print(in_threads(range({n}, {})))", n + few),
        5 => format!("with open('/work/log', 'a') as log: print(log.write('{n}\\n' * {few}))"),
        6 => format!("os.mkdir('/work/{n}'); print(sorted(os.listdir('/work')))"),
        7 => format!(
            "open('/work/{n}', 'w').close(); os.rename('/work/{n}', '/work/{n}b')
print(os.path.exists('/work/{n}'), os.path.exists('/work/{n}b'))
{}",
            if few.is_multiple_of(2) { format!("os.unlink('/work/{n}b')") } else { String::new() }
        ),
        8 => format!("time.sleep(0.00{few}); print(time.time() > 1e9)"),
        9 => "print(next(values), next(values))".to_owned(),
        10 => format!("print(steps.step({n}), steps.step({n} + 1))"),
        11 => format!("print(posted({n}))"),
        12 => format!("print(fetched('/look/{n}'))"),
        13 => "print(alarm())".to_owned(),
        14 => format!("print(sum(n * n for n in range({few}0000)))"),
        15 => format!("try: [][once({n})]\nexcept IndexError as error: print(error)"),
        16 => format!(
            "import subprocess
print(subprocess.run('printf \"b{n}\\na\\n\" | sort', shell=True, capture_output=True).stdout)"
        ),
        17 if has_seed => {
            "print(random.random(), time.time() // 9, os.urandom(3), hash('x'))".to_owned()
        }
        17 => format!("random.seed({n}); print(random.random(), time.monotonic() > 0)"),
        19 => format!(
            "for change in (os.unlink, os.rmdir, lambda path: os.rename(path, path + 'b')):
    try: change('/work/none')
    except FileNotFoundError as error: print({n}, error)"
        ),
        20 => format!(
            "os.makedirs('/work/there', exist_ok=True)
for change in (os.mkdir, lambda path: os.symlink('none', path), lambda path: open(path, 'x')):
    try: change('/work/there')
    except FileExistsError as error: print({n}, error)"
        ),
        18 => "print(sys.stdin.readline(), sys.stdin.read(2))".to_owned(),
        _ => format!(
            "for n in range({n}, {}): print(n, once(n), file=open('/work/calls', 'a'))",
            n + few
        ),
    }
}

/// What a program of the corpus begins with: the first texts that it prints are effects, too.
const NOTED: &str = "
import builtins
print_ = builtins.print
noted = 0
def print_once(*args, **options):
    global noted
    print_(*args, **options)
    if noted < 30:
        noted += 1
        try: act(noted)
        except CallInterrupted: settle(noted)
builtins.print = print_once
";

/// Returns the programs of the corpus.
pub(super) fn corpus() -> Vec<Program> {
    let entries = fs::read_dir(root().join("tests/corpus")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    paths.sort();
    let program = |(nth, path): (usize, PathBuf)| Program {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        source: format!("{NOTED}{}", fs::read_to_string(&path).unwrap()),
        seed: nth.is_multiple_of(2).then_some(7),
    };
    paths.into_iter().enumerate().map(program).collect()
}
