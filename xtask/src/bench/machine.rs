//! Describes the machine and the time of a measurement.

use std::fs;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};

/// Returns a sentence for the line above the table. `before` is the load before the first round.
pub(super) fn description(rounds: usize, before: &str) -> Result<String> {
    let (here, after) = (here()?, load());
    Ok(format!("{here}; rounds: {rounds}; load average {before} before and {after} after.\n"))
}

/// Returns the date, and what the machine is.
pub(crate) fn here() -> Result<String> {
    let cores = thread::available_parallelism().context("cannot count the processors")?;
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Ok(format!(
        "{}, {}, {cores} cores, {}",
        output("date", &["-u", "+%Y-%m-%d"])?,
        model(&cpu),
        output("uname", &["-srm"])?,
    ))
}

/// Returns the average number of threads that needed a processor in the last minute.
pub(super) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn model(cpuinfo: &str) -> &str {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    line.map_or("unknown processor", |line| line.trim_start_matches(['\t', ' ', ':']))
}

fn output(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).output();
    let output = output.with_context(|| format!("cannot run `{program}`"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_is_named() {
        let cpuinfo =
            "processor\t: 0\nmodel\t\t: 7\nmodel name\t: Some CPU @ 2 GHz\nstepping\t: 1\n";
        assert_eq!(model(cpuinfo), "Some CPU @ 2 GHz");
        assert_eq!(model(""), "unknown processor");
    }
}
