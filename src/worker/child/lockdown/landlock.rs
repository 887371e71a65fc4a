//! Landlock: a ruleset that handles all access rights and allows none.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
};

use super::states::States;
use crate::data::isolation::Layer;

/// The newest interface whose rights are handled. On an older kernel, only the rights it knows are
/// handled.
const NEWEST: ABI = ABI::V9;

/// Denies every path, TCP and access to outside processes, for this thread and those that it will
/// start.
pub(super) fn deny_all(states: &mut States) {
    let outcome = match restrict() {
        Ok(outcome) => outcome,
        Err(error) => return states.missing(Layer::Landlock, error.to_string()),
    };
    let abi = match outcome.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
        LandlockStatus::NotEnabled => {
            return states.missing(Layer::Landlock, "the kernel has it, but does not enable it");
        }
        LandlockStatus::NotImplemented => {
            return states.missing(Layer::Landlock, "the kernel does not have it");
        }
    };
    if outcome.ruleset == RulesetStatus::NotEnforced {
        return states.missing(Layer::Landlock, format!("the kernel enforces none of ABI {abi}"));
    }
    states.enforced(Layer::Landlock, detail(abi));
}

fn restrict() -> Result<RestrictionStatus, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .restrict_self()
}

/// Describes what an interface of this version denies when all rights are requested.
fn detail(abi: ABI) -> String {
    let parts = [
        (ABI::V1, "no paths"),
        (ABI::V4, "no TCP"),
        (ABI::V5, "no device controls"),
        (ABI::V6, "no signals or abstract sockets to others"),
        (ABI::V9, "no path sockets"),
    ];
    let denied = parts.iter().filter(|(since, _)| abi >= *since);
    denied.fold(format!("ABI {abi}"), |text, (_, part)| text + ", " + part)
}
