//! Decides which wheels of the owner's directories stand before those of the package index.
//!
//! A wheel of a name that was asked for, and a native one, is the only one of its name. Any other
//! is preferred: the index has a say only if no wheel of the directories fits. Nobody else's
//! package replaces one of the owner's of the same name otherwise.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::directory::Candidate;
use super::interpreter::PLATFORM;
use super::report::Pin;
use super::requirement::{Dependency, Requirement};

/// Returns the wheels that are the only ones of their names: the best of those that the caller's
/// own requirements allow.
pub(super) fn only<'a>(
    requirements: &[Requirement],
    directories: &'a [Arc<Candidate>],
) -> Vec<&'a Candidate> {
    let asked: BTreeSet<&str> = requirements.iter().map(Requirement::name).collect();
    let native = format!("{PLATFORM}.whl");
    let mut best = best(directories, |one| {
        let mut own = requirements.iter().filter(|requirement| requirement.name() == one.name);
        own.all(|requirement| requirement.specifiers().contains(&one.version))
    });
    best.retain(|one| asked.contains(one.name.as_str()) || one.file_name.ends_with(&native));
    best
}

/// Returns the wheels of the directories that would meet all requirements of their names in a
/// resolution that has others in their place.
pub(super) fn replaced<'a>(
    pins: &[Pin],
    requirements: &[Requirement],
    directories: &'a [Arc<Candidate>],
) -> Vec<&'a Candidate> {
    let foreign: BTreeSet<&str> = pins
        .iter()
        .filter(|pin| directories.iter().all(|one| one.digest != pin.digest))
        .map(|pin| pin.name.as_str())
        .collect();
    let needs: Vec<Requirement> =
        pins.iter().flat_map(needs).chain(requirements.iter().cloned()).collect();
    let mut best = best(directories, |one| {
        let mut own = needs.iter().filter(|need| need.name() == one.name);
        own.all(|need| need.specifiers().contains(&one.version))
    });
    best.retain(|one| foreign.contains(one.name.as_str()));
    best
}

/// Returns what a chosen wheel needs, as far as its metadata can be read.
fn needs(pin: &Pin) -> Vec<Requirement> {
    let dependencies = pin.requires.iter().filter_map(|text| text.parse::<Dependency>().ok());
    let applied = dependencies.filter(|one| one.applies(&pin.extras).unwrap_or_default());
    applied.map(|one| one.requirement).collect()
}

/// Returns the best allowed wheel of each name.
fn best(directories: &[Arc<Candidate>], allowed: impl Fn(&Candidate) -> bool) -> Vec<&Candidate> {
    let mut names = BTreeSet::new();
    let stable = directories.iter().filter(|one| one.version.is_stable());
    let all = stable.chain(directories.iter().filter(|one| !one.version.is_stable()));
    let fitting = all.map(Arc::as_ref).filter(|one| one.metadata.fits_python() && allowed(one));
    fitting.filter(|one| names.insert(one.name.as_str())).collect()
}
