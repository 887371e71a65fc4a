//! The most that a tenant's sessions may be allowed.

use serde::{Deserialize, Serialize};

use super::MostAllowed;
use crate::core::Failure;
use crate::core::limits::LimitsEntry;
use crate::core::policy::Policy;

/// The most that the policy of a session may allow. By default, nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ceiling {
    /// Network rules. A session may ask for these and for narrower ones.
    allow_net: Vec<String>,
    allow_public_net: bool,
    /// Names of packages; `*` stands for all.
    packages: Vec<String>,
    /// The maximum `forkable` of a session.
    forkable: usize,
    /// The highest limits. For a limit that is missing here, the node's policy applies, or its
    /// default.
    limits: LimitsEntry,
}

/// The keys of a policy that refer to files, variables and processes of the node, reserved for the
/// operator.
const OPERATORS: &str = "`mounts`, `allow_env`, `ca_files`, `wheels`, `offline`, `preload`, \
                         `isolation`, `require` and `audit`";

/// Permissions that sessions of other protocols get without asking, as far as the ceiling has them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ImplicitGrants {
    pub public_net: bool,
    /// Grants the packages that the ceiling lists by name.
    pub packages: bool,
    /// The limit `run_time`, in seconds.
    pub run_time: Option<f64>,
    /// The highest `run_time` that clients of this protocol may ask for, unless the ceiling sets
    /// one.
    pub most_run_time: Option<f64>,
}

/// The usual `most_run_time` of other protocols, in seconds.
pub const MOST_SECONDS: f64 = 300.0;

impl Ceiling {
    /// Merges the policy that a client asks for into the policy of all sessions.
    ///
    /// # Errors
    ///
    /// Fails if the client asks for more than the ceiling has.
    pub(crate) fn admit(
        &self,
        base: &Policy,
        asked: Policy,
        grants: &ImplicitGrants,
    ) -> Result<Policy, Failure> {
        let most = self.limits(base, grants);
        self.check(&asked, &most)?;
        let mut policy = base.clone();
        let Policy {
            tools,
            submit,
            allow_net,
            deny_net,
            allow_public_net,
            headers,
            secrets,
            env,
            packages,
            allow_packages,
            limits: asked_limits,
            forkable,
            checkpoint,
            seed,
            start_time,
            bundle,
            // `check` has refused these.
            mounts: _,
            ca_files: _,
            allow_env: _,
            preload: _,
            wheels: _,
            offline: _,
            isolation: _,
            require: _,
            audit: _,
        } = asked;
        policy.tools = tools.or(policy.tools);
        policy.submit = submit.or(policy.submit);
        policy.allow_net.extend(allow_net);
        policy.deny_net.extend(deny_net);
        policy.allow_public_net |= allow_public_net;
        policy.allow_public_net |= grants.public_net && self.allow_public_net;
        for (origin, headers) in headers {
            policy.headers.entry(origin).or_default().extend(headers);
        }
        policy.secrets.extend(secrets);
        policy.env.extend(env);
        policy.packages.extend(packages);
        policy.allow_packages.extend(allow_packages);
        if grants.packages {
            let named = self.packages.iter().filter(|name| *name != "*");
            policy.allow_packages.extend(named.cloned());
        }
        policy.forkable = forkable.or(policy.forkable);
        policy.checkpoint = checkpoint.or(policy.checkpoint);
        policy.seed = seed.or(policy.seed);
        policy.start_time = start_time.or(policy.start_time);
        // What the node's policy forbids stays forbidden.
        policy.bundle = [bundle, policy.bundle].into_iter().flatten().min();
        let mut limits = LimitsEntry::of_node();
        limits.replace(LimitsEntry::of_run_time(grants.run_time));
        limits.replace(policy.limits);
        limits.replace(asked_limits);
        limits.lower(&most);
        policy.limits = limits;
        Ok(policy)
    }

    /// Returns the highest limits of a session: from the ceiling, else from the node's policy, else
    /// the defaults. None is infinite.
    fn limits(&self, base: &Policy, grants: &ImplicitGrants) -> LimitsEntry {
        let mut most = LimitsEntry::of_node();
        most.raise_run_time(grants.most_run_time);
        most.replace(base.limits.clone());
        most.replace(self.limits.clone());
        most
    }

    /// Returns the most that clients may ask for.
    pub(crate) fn most(&self, base: &Policy) -> MostAllowed {
        MostAllowed {
            allow_net: self.allow_net.clone(),
            allow_public_net: self.allow_public_net,
            packages: self.packages.clone(),
            forkable: self.forkable,
            limits: self.limits(base, &ImplicitGrants::default()),
        }
    }

    fn check(&self, asked: &Policy, most: &LimitsEntry) -> Result<(), Failure> {
        if asked.has_what_operators_set() {
            return Err(Failure::denied(format!(
                "{OPERATORS} are set by the node's operator only"
            )));
        }
        for rule in &asked.allow_net {
            if !self.allow_net.iter().any(|ceiling| covers(ceiling, rule)) {
                return Err(denied("the network rule", rule, &self.allow_net));
            }
        }
        if asked.allow_public_net && !self.allow_public_net {
            return Err(Failure::denied("this key may not allow the public network"));
        }
        for requirement in asked.packages.iter().chain(&asked.allow_packages) {
            let name = name_of(requirement);
            let is_it = |ceiling: &String| ceiling == "*" || name_of(ceiling) == name;
            if !self.packages.iter().any(is_it) {
                return Err(denied("the package", requirement, &self.packages));
            }
        }
        if let Some(copies) = asked.forkable.filter(|copies| *copies > self.forkable) {
            let limit = self.forkable;
            return Err(Failure::denied(format!("`forkable`: limit {limit}, asked for {copies}")));
        }
        most.check(&asked.limits)
    }
}

fn denied(what: &str, asked: &str, ceiling: &[String]) -> Failure {
    let allowed = if ceiling.is_empty() {
        "none is".to_owned()
    } else {
        format!("these are: {}", ceiling.join(", "))
    };
    Failure::denied(format!("{what} `{asked}` is not allowed for this key; {allowed}"))
}

/// Returns `true` if the rule `ceiling` includes all addresses of the rule `asked`. A network
/// includes only itself.
fn covers(ceiling: &str, asked: &str) -> bool {
    if ceiling.eq_ignore_ascii_case(asked) {
        return true;
    }
    let split = |rule: &str| match rule.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host.to_ascii_lowercase(), Some(port.to_owned()))
        }
        _ => (rule.to_ascii_lowercase(), None),
    };
    let ((ceiling, ceiling_port), (asked, port)) = (split(ceiling), split(asked));
    let has_host = ceiling == asked
        || ceiling.strip_prefix('*').is_some_and(|domain| {
            domain.starts_with('.') && asked.len() > domain.len() && asked.ends_with(domain)
        });
    has_host && (ceiling_port.is_none() || ceiling_port == port)
}

/// Adds the versions that the policy requires to the requested packages.
///
/// # Errors
///
/// Fails if the policy does not list all of them.
pub(crate) fn admit_packages(
    policy: &Policy,
    mut asked: Vec<String>,
) -> Result<Vec<String>, Failure> {
    let all = [&policy.packages, &policy.allow_packages, &policy.preload];
    let allowed: Vec<&String> = all.into_iter().flatten().collect();
    for nth in 0..asked.len() {
        let name = name_of(&asked[nth]);
        let its: Vec<_> = allowed.iter().filter(|allowed| name_of(allowed) == name).collect();
        if its.is_empty() {
            let allowed: Vec<_> = allowed.iter().map(|allowed| (*allowed).clone()).collect();
            return Err(denied("the package", &asked[nth], &allowed));
        }
        asked.extend(its.into_iter().map(|its| (*its).clone()));
    }
    Ok(asked)
}

/// Returns the normalised name of a requirement.
fn name_of(requirement: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = requirement.trim().chars().take_while(|c| is_part(*c)).collect();
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use isolet::Value;

    use super::*;

    fn ceiling(text: &str) -> Ceiling {
        toml::from_str(text).unwrap()
    }

    fn policy(text: &str) -> Policy {
        let value: Value = serde_json::from_str(text).unwrap();
        Policy::read(value).ok().unwrap()
    }

    fn admit(ceiling: &Ceiling, asked: &str) -> Result<Policy, Failure> {
        ceiling.admit(&Policy::default(), policy(asked), &ImplicitGrants::default())
    }

    fn refusal(ceiling: &Ceiling, asked: &str) -> String {
        admit(ceiling, asked).err().unwrap().message
    }

    #[test]
    fn nothing_is_allowed_that_the_ceiling_does_not_have() {
        let none = Ceiling::default();
        for asked in [
            r#"{"allow_net": ["example.com"]}"#,
            r#"{"allow_public_net": true}"#,
            r#"{"packages": ["numpy"]}"#,
            r#"{"allow_packages": ["numpy>=2"]}"#,
            r#"{"forkable": 1}"#,
            r#"{"mounts": [{"host": "/", "guest": "/host"}]}"#,
            r#"{"allow_env": ["HOME"]}"#,
            r#"{"wheels": ["/"]}"#,
            r#"{"ca_files": ["/etc/passwd"]}"#,
            r#"{"preload": ["numpy"]}"#,
            r#"{"isolation": "thread"}"#,
            r#"{"audit": true}"#,
            r#"{"offline": true}"#,
            r#"{"require": ["seccomp"]}"#,
        ] {
            assert!(admit(&none, asked).is_err(), "{asked}");
        }
        let fine =
            r#"{"env": {"A": "b"}, "deny_net": ["x.com"], "limits": {"memory_bytes": 200000000}}"#;
        assert!(admit(&none, fine).is_ok());
    }

    #[test]
    fn a_narrower_rule_is_allowed_and_a_wider_one_is_not() {
        for (ceiling, asked) in [
            ("example.com", "EXAMPLE.com:443"),
            ("*.example.com", "a.example.com"),
            ("*.example.com", "*.b.example.com:80"),
            ("10.0.0.0/8", "10.0.0.0/8"),
        ] {
            assert!(covers(ceiling, asked), "{ceiling} {asked}");
        }
        for (ceiling, asked) in [
            ("example.com:443", "example.com"),
            ("example.com:443", "example.com:80"),
            ("*.example.com", "example.com"),
            ("*.example.com", "badexample.com"),
            ("*.example.com", "*.com"),
            ("10.0.0.0/8", "10.0.0.0/7"),
        ] {
            assert!(!covers(ceiling, asked), "{ceiling} {asked}");
        }
    }

    #[test]
    fn a_limit_above_the_ceiling_is_refused_with_both_and_defaults_are_lowered() {
        let ceiling = ceiling("limits = { run_time = 5, memory_bytes = 100_000_000 }");
        let text = refusal(&ceiling, r#"{"limits": {"run_time": 6}}"#);
        assert_eq!(text, "`limits.run_time`: limit 5, asked for 6");
        let admitted = admit(&ceiling, "{}").ok().unwrap();
        let limits = admitted.limits.limits().ok().unwrap();
        assert_eq!((limits.memory_bytes(), limits.run_time().as_secs()), (100_000_000, 5));
    }

    #[test]
    fn every_limit_has_an_end_whatever_the_ceiling_names() {
        // That of docs/reference/http-api.md.
        let docs = "limits = { run_time = 60, memory_bytes = 1_000_000_000 }";
        let base = policy(r#"{"limits": {"stdout_bytes": 5000000}}"#);
        let defaults = [
            ("run_time", 60.0),
            ("host_time", 3600.0),
            ("grace", 0.5),
            ("memory_bytes", 1e9),
            ("stdout_bytes", 5e6),
            ("stderr_bytes", 1_048_576.0),
            ("value_bytes", 33_554_432.0),
            ("call_bytes", 8_388_608.0),
            ("source_bytes", 16_777_216.0),
            ("display_bytes", 8_388_608.0),
            ("displays", 100.0),
            ("files", 1000.0),
            ("output_lines", 1e6),
            ("tool_calls", 1e4),
            ("concurrent_tools", 16.0),
            ("refusals", 1e4),
        ];
        macro_rules! names {
            ($($(#[$doc:meta])* $name:ident: $type:ty as $plain:ty, $setter:ident, $default:ident,
               $option:expr;)*) => { BTreeSet::from([$(stringify!($name)),*]) };
        }
        assert_eq!(
            isolet::for_each_limit!(names),
            defaults.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>()
        );
        for (name, default) in defaults {
            let asked = |value: f64| {
                // An int, where one is wanted.
                let text = format!("{{\"limits\": {{\"{name}\": {value}}}}}");
                ceiling(docs).admit(&base, policy(&text), &ImplicitGrants::default())
            };
            let failure = asked(1e12).err().unwrap();
            let text = format!("`limits.{name}`: limit {default}, asked for 1000000000000");
            assert_eq!(failure.message, text);
            assert!(failure.hint.unwrap().contains("ceiling"));
            assert!(asked(default).is_ok(), "{name}");
            assert!(asked((default / 4.0).ceil()).is_ok() || default < 1.0, "{name}");
        }
        let nothing =
            ceiling("").admit(&Policy::default(), policy("{}"), &ImplicitGrants::default());
        let limits = nothing.ok().unwrap().limits.limits().ok().unwrap();
        assert_eq!((limits.run_time().as_secs(), limits.value_bytes()), (30, 32 << 20));
    }

    #[test]
    fn packages_are_compared_as_indexes_do() {
        let ceiling = ceiling(r#"packages = ["scikit_learn", "numpy"]"#);
        let asked = r#"{"allow_packages": ["Scikit-Learn>=1", "numpy[x]"]}"#;
        assert!(admit(&ceiling, asked).is_ok());
        let text = refusal(&ceiling, r#"{"packages": ["numpy-evil"]}"#);
        assert!(text.contains("`numpy-evil`") && text.contains("scikit_learn, numpy"), "{text}");
    }

    #[test]
    fn packages_of_a_session_are_those_of_its_policy_with_what_that_says_of_them() {
        let policy = policy(r#"{"packages": ["numpy>=2"], "allow_packages": ["a_b", "numpy"]}"#);
        let admit = |asked: &[&str]| {
            let asked = asked.iter().map(|&asked| asked.to_owned()).collect();
            admit_packages(&policy, asked).map_err(|failure| failure.message)
        };
        assert_eq!(
            admit(&["A-B==1", "numpy"]).unwrap(),
            ["A-B==1", "numpy", "a_b", "numpy>=2", "numpy"]
        );
        let text = admit(&["numpy", "pandas"]).unwrap_err();
        assert!(text.contains("`pandas`") && text.contains("numpy>=2, a_b, numpy"), "{text}");
        assert!(admit(&["git+https://a.b/numpy"]).is_err());
    }

    #[test]
    fn a_wish_is_granted_as_far_as_the_ceiling_goes() {
        let grants = ImplicitGrants {
            public_net: true,
            packages: true,
            run_time: Some(1e9),
            most_run_time: Some(MOST_SECONDS),
        };
        let granted = |text: &str| {
            let granted = ceiling(text).admit(&Policy::default(), policy("{}"), &grants);
            let granted = granted.ok().unwrap();
            let seconds = granted.limits.limits().ok().unwrap().run_time().as_secs();
            (granted.allow_public_net, granted.allow_packages, seconds)
        };
        assert_eq!(granted(""), (false, Vec::new(), 300));
        let some =
            "allow_public_net = true\npackages = [\"numpy\", \"*\"]\nlimits = { run_time = 5 }";
        assert_eq!(granted(some), (true, vec!["numpy".to_owned()], 5));
        let base = policy(r#"{"limits": {"run_time": 20}}"#);
        let own = ceiling("").admit(&base, policy("{}"), &grants).ok().unwrap();
        assert_eq!(own.limits.limits().ok().unwrap().run_time().as_secs(), 20);
    }
}
