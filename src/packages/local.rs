//! Resolves requirements from available wheels, without pip.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pep440_rs::{Version, VersionSpecifier, VersionSpecifiers};

use super::directory::Candidate;
use super::error::PackageError;
use super::requirement::Requirement;

/// How many wrong choices are allowed before giving up.
const MAX_RESTARTS: usize = 100;

/// A source of candidates.
pub(crate) trait Source {
    /// Returns the best candidate of this name with an allowed version.
    ///
    /// # Errors
    ///
    /// Fails if a file that must be read is damaged.
    fn best(
        &self,
        name: &str,
        allowed: &dyn Fn(&Version) -> bool,
    ) -> Result<Option<Arc<Candidate>>, PackageError>;
}

/// The result of a local resolution.
#[derive(Debug)]
pub(crate) enum Local {
    /// All wheels that are needed, by name.
    Complete(Vec<Arc<Candidate>>),
    /// No wheel meets this requirement of this distribution, or of the caller.
    Missing { wanted: Requirement, by: Option<String> },
}

/// Finds the best wheel for each requirement and, recursively, for its dependencies. If a later
/// requirement restricts a name that was already chosen, resolution restarts with the restriction.
/// Only the best choices are tried.
///
/// # Errors
///
/// Fails if the metadata of a wheel cannot be read.
pub(crate) fn resolve(
    requirements: &[Requirement],
    source: &dyn Source,
) -> Result<Local, PackageError> {
    let mut bounds = Bounds::default();
    for _ in 0..MAX_RESTARTS {
        let mut attempt = Attempt { source, bounds: &mut bounds, chosen: BTreeMap::new() };
        match attempt.run(requirements)? {
            Step::Done => {
                let chosen = attempt.chosen.into_values().map(|(candidate, _)| candidate);
                return Ok(Local::Complete(chosen.collect()));
            }
            Step::Missing(wanted, by) => return Ok(Local::Missing { wanted, by }),
            Step::Restart => {}
        }
    }
    let wanted: Vec<String> = requirements.iter().map(ToString::to_string).collect();
    let reason = format!("limit {MAX_RESTARTS} changes of versions, needed more");
    Err(PackageError::Unresolved { wanted: wanted.join(" "), reason })
}

/// The known version constraints of each name.
type Bounds = BTreeMap<String, Vec<VersionSpecifiers>>;

struct Attempt<'a> {
    source: &'a dyn Source,
    bounds: &'a mut Bounds,
    /// The chosen wheels, each with its requested extras.
    chosen: BTreeMap<String, (Arc<Candidate>, BTreeSet<String>)>,
}

enum Step {
    Done,
    Restart,
    Missing(Requirement, Option<String>),
}

impl Attempt<'_> {
    fn run(&mut self, requirements: &[Requirement]) -> Result<Step, PackageError> {
        let mut open: Vec<(Requirement, Option<String>)> =
            requirements.iter().map(|requirement| (requirement.clone(), None)).collect();
        // All of the caller's requirements must be known before the first choice.
        for (requirement, _) in &open {
            self.bind(requirement);
        }
        while let Some((wanted, by)) = open.pop() {
            self.bind(&wanted);
            let (candidate, extras) = match self.chosen.get(wanted.name()) {
                Some((candidate, _)) if !wanted.specifiers().contains(&candidate.version) => {
                    return Ok(Step::Restart);
                }
                Some((_, extras)) if wanted.extras().is_subset(extras) => continue,
                Some((candidate, extras)) => (Arc::clone(candidate), extras | wanted.extras()),
                None => match self.choose(wanted.name())? {
                    Some(candidate) => (candidate, wanted.extras().clone()),
                    None => return Ok(Step::Missing(wanted, by)),
                },
            };
            for needed in candidate.needs_with(&extras)? {
                open.push((needed, Some(candidate.name.clone())));
            }
            self.chosen.insert(candidate.name.clone(), (candidate, extras));
        }
        Ok(Step::Done)
    }

    fn bind(&mut self, requirement: &Requirement) {
        let bounds = self.bounds.entry(requirement.name().to_owned()).or_default();
        if !bounds.contains(requirement.specifiers()) {
            bounds.push(requirement.specifiers().clone());
        }
    }

    /// Returns the best candidate for a name. Pre-releases are considered only if a constraint
    /// names one or there is nothing else.
    fn choose(&self, name: &str) -> Result<Option<Arc<Candidate>>, PackageError> {
        let bounds = self.bounds.get(name).map(Vec::as_slice).unwrap_or_default();
        let fits = |version: &Version| bounds.iter().all(|bound| bound.contains(version));
        let named =
            bounds.iter().flat_map(|bound| bound.iter()).any(VersionSpecifier::any_prerelease);
        if !named {
            let stable = |version: &Version| !version.any_prerelease() && fits(version);
            if let Some(found) = self.source.best(name, &stable)? {
                return Ok(Some(found));
            }
        }
        self.source.best(name, &fits)
    }
}
