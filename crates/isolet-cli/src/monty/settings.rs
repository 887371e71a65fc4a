//! Turns a client's `Configure` into limits, permissions and settings of a session.

use std::time::Duration;

use isolet::{BigInt, Limits, Permissions, Sign, Value};

use super::messages::requests::Configure;
use super::messages::settings::{OsPolicy, ResourceLimits, Seed, Sleep, Zone};
use super::messages::{IMPORTS, PROTOCOLS};

/// The most calls of a feed to the client, if its own budget does not end it earlier.
const MAX_CALLS: u64 = u64::MAX;

/// The longest recursion that a client can ask for.
const MAX_RECURSION: u64 = 1_000_000;

/// The frames of isolet's own that are below the client's code.
const OWN_FRAMES: u64 = 50;

/// The longest sleep, unless the client says something else.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// The settings of a session.
pub(super) struct Settings {
    pub(super) wanted: ResourceLimits,
    pub(super) limits: Limits,
    pub(super) permissions: Permissions,
    pub(super) feed_limit: Option<Duration>,
    pub(super) turn_limit: Option<Duration>,
    pub(super) print_interval_ms: Option<u32>,
    /// The settings that the guest's half receives.
    pub(super) policy: Value,
}

/// Returns the refusal of a version that this worker does not speak.
pub(super) fn check_version(configure: &Configure) -> Result<(), String> {
    let version = configure.protocol_version;
    if PROTOCOLS.contains(&version) {
        return Ok(());
    }
    let (first, last) = PROTOCOLS.into_inner();
    let client = match configure.monty_version.as_str() {
        "" => "the client".to_owned(),
        version => format!("Monty's client {version}"),
    };
    Err(format!(
        "{client} speaks version {version} of the worker protocol, isolet {} speaks {first} to \
         {last}; install versions that belong together",
        env!("CARGO_PKG_VERSION")
    ))
}

impl Settings {
    /// Reads a client's settings. Fails for those that cannot be kept.
    pub(super) fn read(configure: Configure) -> Result<Self, String> {
        let wanted = configure.limits.unwrap_or_default();
        let mut limits = Limits::default()
            .max_run_time(Limits::LONGEST_RUN_TIME)
            .max_host_time(Limits::LONGEST_RUN_TIME)
            .max_tool_calls(MAX_CALLS)
            .max_stdout_bytes(0)
            .max_stderr_bytes(0);
        if let Some(bytes) = wanted.max_memory_bytes {
            // The client counts what its code allocates, isolet the whole interpreter.
            limits = limits
                .max_memory_bytes(Limits::MIN_MEMORY_BYTES.saturating_add(bytes).min(4 << 30));
        }
        let OsPolicy { fixed_clock, timezone, sleep, seed } =
            configure.os_policy.unwrap_or_default();
        if let Some(clock) = fixed_clock {
            return Err(format!(
                "the clock cannot stand still at {} seconds after 1970, as CPython reads the \
                 machine's; leave `datetime` out of the `os_policy`",
                clock.unix_seconds
            ));
        }
        let mut permissions = Permissions::none();
        if let Some(zone) = timezone.and_then(|zone| zone.zone).and_then(zone) {
            permissions = permissions.env("TZ", zone);
        }
        let (mode, longest) = match sleep.and_then(|sleep| sleep.mode) {
            Some(Sleep::Zero(_)) => ("zero", None),
            Some(Sleep::CallHost(_)) => ("", None),
            Some(Sleep::System(system)) => {
                ("system_", Some(system.max_micros.map_or(LONGEST_SLEEP, micros)))
            }
            None => ("system_", Some(LONGEST_SLEEP)),
        };
        let recursion = wanted.max_recursion_depth.map_or(Value::None, |depth| {
            Value::from(depth.min(MAX_RECURSION).saturating_add(OWN_FRAMES).cast_signed())
        });
        let policy = Value::dict([
            ("imports", Value::from(configure.protocol_version >= IMPORTS)),
            ("recursion", recursion),
            ("seed", seed.and_then(|seed| seed.value).map_or(Value::None, self::seed)),
            ("sleep", mode.into()),
            ("longest_sleep", longest.map_or(Value::None, |time| time.as_secs_f64().into())),
        ]);
        Ok(Self {
            wanted,
            limits,
            permissions,
            feed_limit: wanted.max_feed_duration_micros.map(micros),
            turn_limit: wanted.max_turn_duration_micros.map(micros),
            print_interval_ms: configure.print_flush_interval_ms,
            policy,
        })
    }
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros).min(Limits::LONGEST_RUN_TIME)
}

fn seed(seed: Seed) -> Value {
    match seed {
        Seed::Int(bytes) => signed(bytes),
        Seed::Float(number) => number.into(),
        Seed::Str(text) => text.into(),
        Seed::Bytes(bytes) => Value::Bytes(bytes),
    }
}

/// Returns the number of a two's complement, least significant byte first.
fn signed(mut bytes: Vec<u8>) -> Value {
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    if is_negative {
        let mut carry = true;
        for byte in &mut bytes {
            let (sum, overflow) = (!*byte).overflowing_add(carry.into());
            (*byte, carry) = (sum, overflow);
        }
    }
    let sign = if is_negative { Sign::Negative } else { Sign::NonNegative };
    Value::from(BigInt::from_le_bytes(sign, &bytes))
}

/// Returns a zone as the variable `TZ` names it; `None` for UTC, which it is without the variable.
fn zone(zone: Zone) -> Option<String> {
    Some(match zone {
        Zone::Utc(_) => return None,
        Zone::Named(name) => name,
        Zone::Fixed(zone) => {
            // POSIX counts westwards.
            let (sign, offset) =
                (if zone.offset_seconds > 0 { '-' } else { '+' }, zone.offset_seconds);
            let offset = offset.unsigned_abs();
            let (hours, minutes, seconds) = (offset / 3600, offset / 60 % 60, offset % 60);
            let usable = |name: &String| {
                name.len() >= 3 && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
            };
            let name = zone.name.filter(usable).unwrap_or_else(|| {
                let east = if sign == '-' { '+' } else { '-' };
                format!("{east}{hours:02}{minutes:02}")
            });
            format!("<{name}>{sign}{hours:02}:{minutes:02}:{seconds:02}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::messages::values::TimeZone;
    use super::*;

    #[test]
    fn a_seed_keeps_its_sign() {
        assert_eq!(signed(vec![]), Value::from(0));
        assert_eq!(signed(vec![0x7f]), Value::from(127));
        assert_eq!(signed(vec![0xff]), Value::from(-1));
        assert_eq!(signed(vec![0, 0x80]), Value::from(-32768));
        assert_eq!(signed(vec![0xff, 0]), Value::from(255));
    }

    #[test]
    fn a_fixed_zone_is_written_as_posix_does() {
        let fixed = |offset_seconds, name: Option<&str>| {
            zone(Zone::Fixed(TimeZone { offset_seconds, name: name.map(str::to_owned) })).unwrap()
        };
        assert_eq!(fixed(7200, Some("CEST")), "<CEST>-02:00:00");
        assert_eq!(fixed(-12_600, None), "<-0330>+03:30:00");
        assert_eq!(fixed(0, Some("a b")), "<-0000>+00:00:00");
    }
}
