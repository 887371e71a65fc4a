//! The seccomp filters: compiles the table of [`calls`] and applies it to all threads.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::LockdownError;
use super::states::States;
use super::syscalls::{Call, PRIVATE, Then, When, calls};
use crate::data::isolation::Layer;
use crate::worker::wire::RING;

/// Applies the filters to every thread of the process.
///
/// Afterwards a system call that is not in the table, or that uses another architecture's numbers,
/// kills the process.
pub(super) fn apply(forkable: bool, states: &mut States) -> Result<(), LockdownError> {
    let calls = calls(forkable);
    let programs = programs(&calls).map_err(LockdownError::Filter)?;
    let applied = programs.iter().try_for_each(|one| seccompiler::apply_filter_all_threads(one));
    match applied {
        Ok(()) => {
            let run = calls.iter().filter(|call| !matches!(call.then, Then::Fail(_))).count();
            let copies = if forkable { ", copies as its parent permits" } else { "" };
            let detail = format!("{run} system calls, nearly any other kills the process{copies}");
            states.enforced(Layer::Seccomp, detail);
        }
        Err(error) => {
            states.missing(Layer::Seccomp, format!("the kernel takes no filter: {error}"));
        }
    }
    Ok(())
}

/// Builds the filters in the order in which they must be applied.
///
/// A filter can return only two results, so each error number needs a separate filter. The kernel
/// takes the strictest result of all filters, and failing is stricter than running. The filter that
/// kills comes last, because it prevents further filters.
pub(super) fn programs(calls: &[Call]) -> Result<Vec<BpfProgram>, BackendError> {
    let error = |call: &Call| match call.then {
        Then::Run => None,
        Then::Fail(error) | Then::RunOr(error) => Some(error.unsigned_abs()),
    };
    let errors: std::collections::BTreeSet<u32> = calls.iter().filter_map(error).collect();
    let refusing = errors.iter().map(|number| {
        let refused = calls.iter().filter(|call| error(call) == Some(*number)).copied();
        let refused = refused.map(|call| match call {
            Call { then: Then::RunOr(_), when: When::IntIs(argument, values), .. } => {
                Call { when: When::IntIsNone(argument, values), ..call }
            }
            call => call,
        });
        program(refused, SeccompAction::Errno(*number), SeccompAction::Allow)
    });
    let permitted = calls.iter().map(|call| match call.then {
        Then::RunOr(_) => Call { when: When::Always, ..*call },
        Then::Run | Then::Fail(_) => *call,
    });
    let killing = program(permitted, SeccompAction::Allow, SeccompAction::KillProcess);
    refusing.chain([killing]).collect()
}

/// Builds the filter that gives one result for these calls, and another for all others.
fn program(
    calls: impl Iterator<Item = Call>,
    answer: SeccompAction,
    otherwise: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let own = u64::from(std::process::id());
    let rules = calls
        .map(|call| Ok((call.number, alternatives(call.when, own)?)))
        .collect::<Result<_, BackendError>>()?;
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, otherwise, answer, target)?.try_into()
}

/// Returns the rules of one call, of which one must match; none for a call that is always
/// permitted.
fn alternatives(when: When, own: u64) -> Result<Vec<SeccompRule>, BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let rule = |argument, length, operator, value| {
        SeccompRule::new(vec![SeccompCondition::new(argument, length, operator, value)?])
    };
    // If the kernel takes an argument as an `int`, its upper half is ignored.
    let bits = |int: i32| u64::from(int.cast_unsigned());
    match when {
        When::Always => Ok(Vec::new()),
        When::IntIs(argument, values) => {
            values.iter().map(|value| rule(argument, Dword, Eq, bits(*value))).collect()
        }
        When::IntIsNone(argument, values) => {
            let others = values
                .iter()
                .map(|value| SeccompCondition::new(argument, Dword, Ne, bits(*value)))
                .collect::<Result<_, _>>()?;
            Ok(vec![SeccompRule::new(others)?])
        }
        When::IntMasked(argument, mask, values) => values
            .iter()
            .map(|value| rule(argument, Dword, MaskedEq(bits(mask)), bits(*value)))
            .collect(),
        When::LongMasked(argument, mask, value) => {
            Ok(vec![rule(argument, Qword, MaskedEq(mask.cast_unsigned()), bits(value))?])
        }
        When::OwnProcess(argument) => Ok(vec![rule(argument, Dword, Eq, own)?]),
        When::MapsRing => {
            let flags = bits(libc::MAP_SHARED | libc::MAP_FIXED);
            let conditions = vec![
                SeccompCondition::new(3, Qword, Eq, flags)?,
                SeccompCondition::new(4, Dword, Eq, bits(RING))?,
            ];
            let ring = SeccompRule::new(conditions)?;
            Ok(alternatives(PRIVATE, own)?.into_iter().chain([ring]).collect())
        }
    }
}
