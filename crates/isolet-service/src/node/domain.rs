//! The domain of a node, below which each sandbox has names: `PORT-ID.DOMAIN`.

/// A domain, with the port that clients of sandboxes connect to if it is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    host: String,
    port: Option<u16>,
}

/// A name below a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxName<'a> {
    /// The port of a service in the sandbox.
    pub port: u16,
    pub id: &'a str,
}

impl Domain {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port.parse::<u16>().ok().map(Some)),
            None => (text, Some(None)),
        };
        let is_label = |label: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            (1..=63).contains(&label.len()) && label.bytes().all(is_plain)
        };
        match port.filter(|_| host.split('.').all(is_label)) {
            Some(port) => Ok(Self { host: host.to_ascii_lowercase(), port }),
            None => Err(format!(
                "`domain` is {text:?}, and has to be a domain name such as `sandboxes.example.com`"
            )),
        }
    }

    /// Returns the sandbox of a host's name, which is without a port.
    pub fn sandbox<'a>(&self, host: &'a str) -> Option<SandboxName<'a>> {
        let (label, domain) = host.split_once('.')?;
        let (port, id) =
            label.split_once('-').filter(|_| domain.eq_ignore_ascii_case(&self.host))?;
        Some(SandboxName { port: port.parse().ok()?, id })
    }

    /// Whether a host has a name of this domain, or is the domain.
    pub fn has(&self, host: &str) -> bool {
        let at = host.len().checked_sub(self.host.len());
        let Some((below, domain)) = at.and_then(|at| host.split_at_checked(at)) else {
            return false;
        };
        domain.eq_ignore_ascii_case(&self.host) && (below.is_empty() || below.ends_with('.'))
    }
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(text: &str) -> Domain {
        Domain::read(text).unwrap()
    }

    #[test]
    fn a_name_of_a_domain_is_a_sandboxs() {
        let own = domain("Sandboxes.example.com:8443");
        assert_eq!(own.to_string(), "sandboxes.example.com:8443");
        let found = own.sandbox("49999-n1-abc.SANDBOXES.example.com");
        assert_eq!(found, Some(SandboxName { port: 49999, id: "n1-abc" }));
        for other in [
            "sandboxes.example.com",
            "49999-n1-abc.example.com",
            "49999.sandboxes.example.com",
            "x-n1.sandboxes.example.com",
            "70000-n1.sandboxes.example.com",
            "a.49999-n1.sandboxes.example.com",
            "",
        ] {
            assert_eq!(own.sandbox(other), None, "{other}");
        }
        assert!(own.has("sandboxes.example.com") && own.has("api.Sandboxes.example.com"));
        assert!(!own.has("mysandboxes.example.com") && !own.has("example.com") && !own.has("é"));
        assert_eq!(domain("localhost").to_string(), "localhost");
        for wrong in ["", "a..b", ".a", "a_b", "a:x", "a:70000", "a b", "http://a"] {
            let error = Domain::read(wrong).unwrap_err();
            assert!(error.contains(&format!("{wrong:?}")), "{error}");
        }
    }
}
