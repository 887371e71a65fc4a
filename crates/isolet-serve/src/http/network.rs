//! The network access that clients of other services ask for.

/// The notation for all addresses.
pub(super) const EVERYTHING: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// The network access of a sandbox.
pub(super) struct Network {
    /// Set for the whole public network, if the ceiling allows it.
    pub(super) has_internet: bool,
    pub(super) allowed: Vec<String>,
    pub(super) denied: Vec<String>,
}

impl Network {
    /// Returns the policy's `allow_net` and `deny_net`.
    pub(super) fn rules(self) -> (Vec<String>, Vec<String>) {
        let Self { has_internet, allowed, mut denied } = self;
        if !has_internet && allowed.is_empty() {
            // Also overrides what the node's policy allows.
            denied.extend(EVERYTHING.map(str::to_owned));
        }
        (allowed, denied)
    }
}
