//! A node's metrics, in Prometheus's text format.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use super::memory::Memory;
use super::{Load, Refusal};

/// Upper bounds of times, in seconds: a warm run takes less than one millisecond, a long one
/// minutes.
const TIMES: [f64; 16] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    120.0,
];

/// The label values: why sessions end, what refuses requests, and how runs end.
const ENDS: [&str; 5] = ["closed", "idle", "expired", "ended", "died"];
const GATES: [&str; 7] = ["key", "capacity", "memory", "quota", "queue", "audit", "draining"];
const OUTCOMES: [&str; 6] = ["completed", "submitted", "raised", "exited", "terminated", "refused"];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    outcome: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Gate {
    gate: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Dialect {
    dialect: &'static str,
}

/// The metrics of a node. No label names a tenant: a reader learns how full the node is, not who
/// uses it.
pub struct Metrics {
    registry: Registry,
    looked_up: LookedUp,
    starts: Histogram,
    created: Counter,
    ended: Family<Why, Counter>,
    refused: Family<Gate, Counter>,
    runs: Times<Outcome>,
    waits: Histogram,
    tool_calls: Counter,
    requests: Times<Dialect>,
}

type Times<L> = Family<L, Histogram, fn() -> Histogram>;

/// Gauges that are set when the metrics are read.
struct LookedUp {
    sessions: Gauge,
    max_sessions: Gauge,
    slots_used: Gauge<f64, AtomicU64>,
    running: Gauge,
    waiting: Gauge,
    preparing: Gauge,
    waiting_for_packages: Gauge,
    memory_available: Gauge,
    memory_total: Gauge,
    resident: Gauge,
    descriptors: Gauge,
    processor: Counter<f64, AtomicU64>,
}

fn times() -> Histogram {
    Histogram::new(TIMES)
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Registry::default();
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        all.register("isolet_build", "The node's version", version);
        let looked_up = LookedUp {
            sessions: add(&mut all, "isolet_sessions", "Sessions"),
            max_sessions: add(&mut all, "isolet_sessions_max", "Sessions that there may be"),
            slots_used: add(&mut all, "isolet_slots_used_ratio", "Sessions by their maximum"),
            running: add(&mut all, "isolet_runs_running", "Runs under way"),
            waiting: add(&mut all, "isolet_runs_waiting", "Runs that wait for their turn"),
            preparing: add(
                &mut all,
                "isolet_packages_preparing",
                "Starts that have packages made ready",
            ),
            waiting_for_packages: add(
                &mut all,
                "isolet_packages_waiting",
                "Starts that wait for packages of others of their tenant",
            ),
            memory_available: add(
                &mut all,
                "isolet_memory_available_bytes",
                "Memory left for sessions, of the machine or of the control group",
            ),
            memory_total: add(&mut all, "isolet_memory_total_bytes", "All memory of the same"),
            resident: add(
                &mut all,
                "process_resident_memory_bytes",
                "Memory of the node's own process, without its workers",
            ),
            descriptors: add(&mut all, "process_open_fds", "Open descriptors of the same"),
            processor: add(&mut all, "process_cpu_seconds", "Processor time of the same"),
        };
        let metrics = Self {
            looked_up,
            starts: add_as(&mut all, "isolet_session_start_seconds", "Starts of sessions", times()),
            created: add(&mut all, "isolet_sessions_created", "Sessions started"),
            ended: add(&mut all, "isolet_sessions_ended", "Sessions ended, by why"),
            refused: add(&mut all, "isolet_refused", "Refused requests, by what refused them"),
            runs: add_as(
                &mut all,
                "isolet_run_seconds",
                "Runs, by how they ended",
                Family::new_with_constructor(times),
            ),
            waits: add_as(
                &mut all,
                "isolet_run_queue_seconds",
                "What runs waited for their turn",
                times(),
            ),
            tool_calls: add(&mut all, "isolet_tool_calls", "Calls of tools that clients answer"),
            requests: add_as(
                &mut all,
                "isolet_http_request_seconds",
                "Requests until their answers began, by protocol",
                Family::new_with_constructor(times),
            ),
            registry: all,
        };
        // Created at 0, because Prometheus computes no rate for the first sample of a series.
        for reason in ENDS {
            drop(metrics.ended.get_or_create(&Why { reason }));
        }
        for gate in GATES {
            drop(metrics.refused.get_or_create(&Gate { gate }));
        }
        for outcome in OUTCOMES {
            drop(metrics.runs.get_or_create(&Outcome { outcome: outcome.to_owned() }));
        }
        metrics
    }
}

fn add<M: Metric + Clone + Default>(to: &mut Registry, name: &str, help: &str) -> M {
    add_as(to, name, help, M::default())
}

fn add_as<M: Metric + Clone>(to: &mut Registry, name: &str, help: &str, metric: M) -> M {
    to.register(name, help, metric.clone());
    metric
}

impl Metrics {
    pub(crate) fn started(&self, since: Instant) {
        self.created.inc();
        self.starts.observe(since.elapsed().as_secs_f64());
    }

    pub(crate) fn ended(&self, reason: &'static str) {
        self.ended.get_or_create(&Why { reason }).inc();
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        if let Some(gate) = gate(refusal) {
            self.refused.get_or_create(&Gate { gate }).inc();
        }
    }

    pub(crate) fn waited(&self, since: Instant) {
        self.waits.observe(since.elapsed().as_secs_f64());
    }

    pub(crate) fn ran(&self, outcome: &str, since: Instant) {
        let outcome = Outcome { outcome: outcome.to_owned() };
        self.runs.get_or_create(&outcome).observe(since.elapsed().as_secs_f64());
    }

    /// Returns the counter of tool calls.
    pub(crate) fn tool_calls(&self) -> Counter {
        self.tool_calls.clone()
    }

    /// Creates the series of a protocol.
    pub fn speaks(&self, dialect: &'static str) {
        drop(self.requests.get_or_create(&Dialect { dialect }));
    }

    /// Counts a request of a protocol.
    pub fn answered(&self, dialect: &'static str, time: Duration) {
        self.requests.get_or_create(&Dialect { dialect }).observe(time.as_secs_f64());
    }

    /// Returns all metrics, as text.
    pub(crate) fn text(&self, load: &Load) -> String {
        self.looked_up.look(load);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Returns which gate refused; `None` if the request itself was wrong.
fn gate(refusal: &Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::Key => Some("key"),
        Refusal::Full(_) | Refusal::InFlight(_) => Some("capacity"),
        Refusal::Memory(_) => Some("memory"),
        Refusal::Quota(_) | Refusal::TooFast(..) | Refusal::AuditQuota(..) => Some("quota"),
        Refusal::Unlogged(_) => Some("audit"),
        Refusal::Waited(..) => Some("queue"),
        Refusal::Draining => Some("draining"),
        Refusal::Unknown
        | Refusal::Gone(_)
        | Refusal::Restoring
        | Refusal::Paused
        | Refusal::NoContext(_)
        | Refusal::NoSnapshot(_)
        | Refusal::NoRun(_)
        | Refusal::Unreadable(_)
        | Refusal::Failure(_) => None,
    }
}

impl LookedUp {
    fn look(&self, load: &Load) {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.sessions.set(count(load.sessions));
        self.max_sessions.set(count(load.max_sessions));
        self.slots_used.set(load.slots_used());
        self.running.set(count(load.running));
        self.waiting.set(count(load.waiting));
        self.preparing.set(count(load.preparing));
        self.waiting_for_packages.set(count(load.waiting_for_packages));
        if let Some(memory) = Memory::read() {
            let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            self.memory_available.set(bytes(memory.available));
            self.memory_total.set(bytes(memory.total));
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            self.descriptors.set(count(entries.count()));
        }
        if let Some((seconds, bytes)) = own_process() {
            self.processor.inner().store(seconds.to_bits(), Ordering::Relaxed);
            self.resident.set(bytes);
        }
    }
}

/// Returns this process's processor time in seconds, and its memory in bytes.
fn own_process() -> Option<(f64, i64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The program's name, in parentheses, may contain spaces.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |nth: usize| fields.get(nth)?.parse::<u32>().ok();
    let ticks = f64::from(field(11)?) + f64::from(field(12)?);
    let pages: i64 = fields.get(21)?.parse().ok()?;
    let page = i64::try_from(rustix::param::page_size()).ok()?;
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some((ticks / f64::from(per_second), pages.saturating_mul(page)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_in_the_text_with_its_labels() {
        let metrics = Metrics::default();
        metrics.started(Instant::now());
        metrics.ended("idle");
        metrics.refused(&Refusal::Full(3));
        metrics.refused(&Refusal::Unknown);
        metrics.ran("completed", Instant::now());
        metrics.answered("native", Duration::from_millis(2));
        metrics.tool_calls().inc();
        let load = Load {
            sessions: 1,
            max_sessions: 4,
            running: 0,
            waiting: 2,
            preparing: 1,
            waiting_for_packages: 3,
        };
        let text = metrics.text(&load);
        for line in [
            "isolet_sessions 1",
            "isolet_slots_used_ratio 0.25",
            "isolet_runs_waiting 2",
            "isolet_packages_preparing 1",
            "isolet_packages_waiting 3",
            "isolet_sessions_created_total 1",
            "isolet_sessions_ended_total{reason=\"idle\"} 1",
            "isolet_refused_total{gate=\"capacity\"} 1",
            "isolet_run_seconds_count{outcome=\"completed\"} 1",
            "isolet_http_request_seconds_bucket{le=\"0.0025\",dialect=\"native\"} 1",
            "isolet_tool_calls_total 1",
            "# EOF",
        ] {
            assert!(text.lines().any(|its| its == line), "{line}\n{text}");
        }
        let version = env!("CARGO_PKG_VERSION");
        assert!(text.contains(&format!("isolet_build_info{{version=\"{version}\"}} 1")), "{text}");
        for line in [
            "isolet_refused_total{gate=\"key\"} 0",
            "isolet_sessions_ended_total{reason=\"died\"} 0",
        ] {
            assert!(text.lines().any(|its| its == line), "{line}\n{text}");
        }
        for name in
            ["process_open_fds", "process_resident_memory_bytes", "isolet_memory_total_bytes"]
        {
            let line =
                text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
            assert!(line.parse::<i64>().unwrap() > 0, "{name} {line}");
        }
    }
}
