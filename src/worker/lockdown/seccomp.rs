//! The seccomp filter: [`ALLOWED`] as a program for the kernel, applied to all threads.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use super::LockdownError;
use super::states::States;
use super::syscalls::{ALLOWED, REFUSED, When};
use crate::isolation::Layer;

/// Applies the filter to every thread of the process.
///
/// From here on a call that is not in the table, or comes by another architecture's numbers, kills
/// the process.
pub(super) fn apply(states: &mut States) -> Result<(), LockdownError> {
    let refusal = refuse().map_err(LockdownError::Filter)?;
    let program = build(SeccompAction::KillProcess).map_err(LockdownError::Filter)?;
    // The kernel asks every filter and takes the strictest answer.
    let applied = seccompiler::apply_filter_all_threads(&refusal)
        .and_then(|()| seccompiler::apply_filter_all_threads(&program));
    match applied {
        Ok(()) => {
            let detail = format!("{} system calls, any other kills the process", ALLOWED.len());
            states.enforced(Layer::Seccomp, detail);
        }
        Err(error) => {
            states.missing(Layer::Seccomp, format!("the kernel takes no filter: {error}"));
        }
    }
    Ok(())
}

/// Builds the filter, with what becomes of calls that are not in the table.
fn build(otherwise: SeccompAction) -> Result<BpfProgram, BackendError> {
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    let own = u64::from(std::process::id());
    let rules = ALLOWED
        .iter()
        .chain(REFUSED)
        .map(|allowed| Ok((allowed.number, alternatives(allowed.when, own)?)))
        .collect::<Result<_, BackendError>>()?;
    SeccompFilter::new(rules, otherwise, SeccompAction::Allow, target)?.try_into()
}

/// Builds the filter of calls that fail and do not kill.
fn refuse() -> Result<BpfProgram, BackendError> {
    let target = TargetArch::try_from(std::env::consts::ARCH)?;
    let rules = REFUSED.iter().map(|refused| (refused.number, Vec::new())).collect();
    let answer = SeccompAction::Errno(libc::EACCES.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, answer, target)?.try_into()
}

/// The rules of one call, of which one has to match; none for a call that is always allowed.
fn alternatives(when: When, own: u64) -> Result<Vec<SeccompRule>, BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    use SeccompCmpOp::{Eq, MaskedEq};
    let rule = |argument, length, operator, value| {
        SeccompRule::new(vec![SeccompCondition::new(argument, length, operator, value)?])
    };
    // Of an argument that the kernel takes as an `int` the upper half is nothing.
    let bits = |int: i32| u64::from(int.cast_unsigned());
    match when {
        When::Always => Ok(Vec::new()),
        When::IntIs(argument, values) => {
            values.iter().map(|value| rule(argument, Dword, Eq, bits(*value))).collect()
        }
        When::IntMasked(argument, mask, values) => values
            .iter()
            .map(|value| rule(argument, Dword, MaskedEq(bits(mask)), bits(*value)))
            .collect(),
        When::LongHas(argument, bit) => {
            Ok(vec![rule(argument, Qword, MaskedEq(bits(bit)), bits(bit))?])
        }
        When::Null(argument) => Ok(vec![rule(argument, Qword, Eq, 0)?]),
        When::OwnProcess(argument) => Ok(vec![rule(argument, Dword, Eq, own)?]),
    }
}
