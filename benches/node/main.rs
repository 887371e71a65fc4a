//! Measures a node of `isolet serve --listen` beside the library in a process of its own, by the
//! processor time of each with its workers:
//! `cargo bench -p isolet-cli --bench node -- [--rounds N] [--age SECONDS] [--sessions N]`
//!
//! Both do the same work in turns, each in a control group, which counts the time of processes that
//! have ended, too. The client's time counts for neither. Then one tenant floods a node, and the
//! runs of another one are timed. `--sessions` has a node hold so many, and shows what creation
//! costs on the way. `--age` has both run for so long before. The numbers in
//! `docs/concepts/scale.md` are those of `--rounds 3 --age 110 --sessions 5000`.

#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]

mod control_group;
mod flood;
mod http;
mod library;
#[path = "../support/pss.rs"]
mod pss;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::control_group::ControlGroup;
use self::http::Node;
use self::library::Library;

/// How many clients, or threads, there are at once, unless a row says otherwise.
pub(crate) const CLIENTS: usize = 8;

/// After how many further sessions their creation is shown.
const STEP: usize = 500;

/// More memory than a further session takes with what the kernel has for it, in bytes.
const SESSION_BYTES: usize = 4 << 20;

const PAGE_BYTES: usize = 4096;

/// Something to measure.
pub(crate) trait Subject {
    /// Does the work: so many times, by so many clients at once.
    fn order(&mut self, work: Work, count: usize, clients: usize) -> Result<()>;
    fn group(&self) -> &ControlGroup;
}

/// What is measured. Sessions stay open until [`Work::End`], which ends all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Create,
    /// A run in each session.
    RunEach,
    /// Runs of each client in a session of its own.
    Run,
    End,
    /// A session, a run and its end.
    Once,
}

struct Row {
    name: &'static str,
    work: Work,
    count: usize,
    clients: usize,
    /// The processor time that it may take, in milliseconds.
    goal: Option<f64>,
}

const ROWS: [Row; 6] = [
    Row { name: "create", work: Work::Create, count: 200, clients: CLIENTS, goal: Some(6.67) },
    Row { name: "first run", work: Work::RunEach, count: 200, clients: CLIENTS, goal: None },
    Row { name: "warm run, 1 client", work: Work::Run, count: 2000, clients: 1, goal: Some(0.4) },
    Row { name: "warm run, 8 clients", work: Work::Run, count: 4000, clients: 8, goal: Some(0.4) },
    Row { name: "end", work: Work::End, count: 200, clients: CLIENTS, goal: None },
    Row { name: "one-shot", work: Work::Once, count: 200, clients: CLIENTS, goal: Some(10.0) },
];

/// What one measurement found, for each time.
#[derive(Clone, Copy)]
struct Cost {
    processor: Duration,
    wall: Duration,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == library::ARGUMENT) {
        return library::serve();
    }
    let given = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let rounds: usize = given("--rounds").map_or(Ok(1), |rounds| rounds.parse())?;
    ensure!(rounds > 0, "`--rounds` is 0, and has to be 1 or more");
    // Elsewhere there are none to make, or not for this user.
    if let Err(error) = ControlGroup::new("try") {
        println!("left out, because no control group can be made: {error:#}");
        return Ok(());
    }
    let age: u64 = given("--age").map_or(Ok(0), |seconds| seconds.parse())?;
    compare(rounds, Duration::from_secs(age))?;
    flood::measure()?;
    if let Some(most) = given("--sessions") {
        fill(most.parse()?)?;
    }
    Ok(())
}

/// Has both subjects do the work of all rows in turns, once they are this old: V8 does some work
/// late.
fn compare(rounds: usize, age: Duration) -> Result<()> {
    let (mut library, mut node) = (Library::start()?, Node::start()?);
    let mut costs: Vec<[Vec<Cost>; 2]> = ROWS.iter().map(|_| Default::default()).collect();
    // Round 0 warms up.
    for round in 0..=rounds {
        if round == 1 {
            std::thread::sleep(age);
        }
        for place in 0..2 {
            // Neither is always the first.
            let which = (round + place) % 2;
            let subject: &mut dyn Subject = if which == 0 { &mut library } else { &mut node };
            for (row, costs) in ROWS.iter().zip(&mut costs) {
                let cost = measure(subject, row.work, row.count, row.clients)?;
                if round > 0 {
                    costs[which].push(cost);
                }
            }
        }
    }
    println!("{rounds} rounds; medians; ms of processor time with the workers', for each");
    println!(
        "{:<20} {:>8} {:>8} {:>6} {:>16} {:>9} {:>16}",
        "", "library", "node", "ratio", "a core, a second", "a second", "goal: at most, ms"
    );
    for (row, [library, node]) in ROWS.iter().zip(costs) {
        let (library, node) = (median(library), median(node));
        let goal = row.goal.map_or_else(String::new, |goal| goal.to_string());
        println!(
            "{:<20} {:>8.3} {:>8.3} {:>6.2} {:>16.0} {:>9.0} {goal:>16}",
            row.name,
            ms(library.processor),
            ms(node.processor),
            node.processor.as_secs_f64() / library.processor.as_secs_f64(),
            1.0 / node.processor.as_secs_f64(),
            1.0 / node.wall.as_secs_f64(),
        );
    }
    Ok(())
}

/// Opens sessions in a node until it has `most`.
fn fill(most: usize) -> Result<()> {
    let mut node = Node::start()?;
    println!(
        "\nsessions  created in a second  ms of processor time each  us to touch a page before"
    );
    for count in (0..most).step_by(STEP) {
        let step = STEP.min(most - count);
        let touched = touch(step * SESSION_BYTES);
        let cost = measure(&mut node, Work::Create, step, CLIENTS)?;
        println!(
            "{:>8}  {:>19.0}  {:>25.2}  {:>25.2}",
            count + step,
            1.0 / cost.wall.as_secs_f64(),
            ms(cost.processor),
            touched.as_secs_f64() * 1e6
        );
    }
    let pss = pss::pss(node.process())?;
    let (before, start) = (node.group().used()?, Instant::now());
    std::thread::sleep(Duration::from_secs(5));
    let idle =
        node.group().used()?.saturating_sub(before).as_secs_f64() / start.elapsed().as_secs_f64();
    println!("{most} sessions: {} MiB (Pss), idle {:.1} % of a core", pss >> 20, idle * 100.0);
    let cost = measure(&mut node, Work::RunEach, most, CLIENTS)?;
    println!("a first run in each: {:.2} ms of processor time", ms(cost.processor));
    println!("{most} sessions: {} MiB (Pss)", pss::pss(node.process())? >> 20);
    let cost = measure(&mut node, Work::End, most, CLIENTS)?;
    println!("end: {:.2} ms of processor time each", ms(cost.processor));
    Ok(())
}

fn measure(subject: &mut dyn Subject, work: Work, count: usize, clients: usize) -> Result<Cost> {
    let before = subject.group().settled()?;
    let start = Instant::now();
    subject.order(work, count, clients)?;
    let wall = start.elapsed();
    let processor = subject.group().settled()?.saturating_sub(before);
    let count = u32::try_from(count)?;
    Ok(Cost { processor: processor / count, wall: wall / count })
}

/// Touches so much memory and gives it back, so that it is there for what follows: a virtual
/// machine gets memory from its host when it is touched, which takes longer than what a session
/// does with it. Returns what a page took.
fn touch(bytes: usize) -> Duration {
    let start = Instant::now();
    let mut memory = vec![0_u8; bytes];
    for page in memory.chunks_mut(PAGE_BYTES) {
        page[0] = 1;
    }
    let pages = u32::try_from(std::hint::black_box(memory).len() / PAGE_BYTES).unwrap_or(u32::MAX);
    start.elapsed() / pages
}

fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by_key(|cost| cost.processor);
    costs[costs.len() / 2]
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Starts as many threads, each of which does its part of the work.
pub(crate) fn in_threads<T: Send>(
    parts: Vec<T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(|| work(part))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().ok().context("a client's thread has panicked")?)
    })
}
