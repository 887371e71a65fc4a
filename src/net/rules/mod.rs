//! The network policy: rules, and the checks that a decision makes with them.
//!
//! Nothing is allowed unless a rule allows it. A rule that denies overrides every rule that allows,
//! in any order. A rule for a name allows only public addresses behind it; any other address needs
//! a rule for addresses.

mod address;
mod host;
mod inject;
mod ports;
mod rule;
mod secret;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hyper::header::HeaderMap;
use tokio_rustls::rustls::pki_types::CertificateDer;

pub(crate) use self::host::Host;
use self::inject::InjectedHeader;
pub(crate) use self::inject::{Origin, is_framing};
pub(crate) use self::ports::is_bad as is_bad_port;
use self::rule::Rule;
pub(crate) use self::rule::RuleError;
pub use self::secret::Secret;
pub(crate) use self::secret::{OriginSecrets, Secrets, TooLong};

/// A parsed policy. By default it denies everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetPolicy {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    reach: Reach,
    strict_ports: bool,
    answers: BTreeMap<String, Vec<IpAddr>>,
    injected: Vec<InjectedHeader>,
    secrets: Secrets,
    authorities: Vec<CertificateDer<'static>>,
}

/// What is allowed in addition to the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    #[default]
    Nothing,
    Public,
    Everything,
}

impl NetPolicy {
    /// Allows the destinations that a rule covers, such as `api.example.com:443`, `*.example.com`
    /// or `10.1.0.0/16:8080`.
    ///
    /// A rule without a port covers every port. `*.example.com` covers names with one or more
    /// labels before `.example.com`, but not `example.com`. At least two labels must follow `*.`.
    /// There is no list of public suffixes, so do not use `*.co.uk`.
    ///
    /// # Errors
    ///
    /// Fails if the entry is invalid. The error names it and describes a valid one.
    pub(crate) fn allow(&mut self, rule: &str) -> Result<(), RuleError> {
        self.allow.push(Rule::parse(rule)?.fit_to_allow(rule)?);
        Ok(())
    }

    /// Denies the destinations that a rule covers, whatever else allows them. A rule for addresses
    /// also denies names that resolve to one of them.
    ///
    /// # Errors
    ///
    /// Fails if the entry is invalid. The error names it and describes a valid one.
    pub(crate) fn deny(&mut self, rule: &str) -> Result<(), RuleError> {
        self.deny.push(Rule::parse(rule)?);
        Ok(())
    }

    /// Allows every name and port, at public addresses.
    pub(crate) fn allow_public(&mut self) {
        self.reach = self.reach.max(Reach::Public);
    }

    /// Allows every address, including those of the host and its network. Cloud metadata services
    /// still need a rule for exactly their address.
    pub(crate) fn dangerous_allow_all(&mut self) {
        self.reach = Reach::Everything;
    }

    /// Sets the certificate authorities to trust in addition to those of Mozilla's programme, in
    /// DER form.
    pub(crate) fn trust<'a>(&mut self, authorities: impl Iterator<Item = &'a [u8]>) {
        self.authorities = authorities.map(|der| CertificateDer::from(der).into_owned()).collect();
    }

    /// Returns these certificate authorities.
    pub(super) fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.authorities
    }

    /// Sets the addresses of a name, in place of DNS. They are checked like addresses from DNS.
    ///
    /// # Errors
    ///
    /// Rejects invalid names, `localhost`, and an empty list of addresses.
    pub(crate) fn resolve_to(
        &mut self,
        name: &str,
        addresses: Vec<IpAddr>,
    ) -> Result<(), RuleError> {
        let host = rule::name(name).ok_or_else(|| {
            RuleError::new(name, "is no host name, so it has no addresses to set")
        })?;
        if Host::Name(host.clone()).is_localhost() {
            return Err(RuleError::new(name, "is loopback by definition; name another host"));
        }
        if addresses.is_empty() {
            return Err(RuleError::new(name, "would have no address; give at least one"));
        }
        let addresses = addresses.into_iter().map(|address| address.to_canonical()).collect();
        self.answers.insert(host, addresses);
        Ok(())
    }

    /// Adds a header to requests to an origin, such as `https://api.example.com`. It replaces the
    /// guest's header of that name. It does not allow requests to the origin. `Debug` omits the
    /// value.
    ///
    /// # Errors
    ///
    /// Rejects invalid origins, and headers that cannot be sent.
    pub(crate) fn inject_header(
        &mut self,
        origin: &str,
        name: &str,
        value: &str,
    ) -> Result<(), RuleError> {
        self.injected.push(InjectedHeader::new(origin, name, value)?);
        Ok(())
    }

    /// Gives the guest a placeholder of a secret, in the environment variable `name`. It does not
    /// allow requests to the secret's hosts. `Debug` omits the secret.
    ///
    /// # Errors
    ///
    /// Rejects a secret that cannot be found or cannot be sent, with the reason.
    pub(crate) fn add_secret(&mut self, name: &str, secret: Secret) -> Result<(), String> {
        self.secrets.add(name, secret)
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Makes rules that allow without a port cover only ports 80 and 443. Rules that deny without a
    /// port still cover every port.
    pub(crate) fn strict_ports(&mut self) {
        self.strict_ports = true;
    }

    /// Checks the host and port of a request, step 3 of the decision. Returns the reason of a
    /// denial.
    pub(crate) fn check_host(&self, host: &Host, port: u16) -> Result<(), &'static str> {
        let denied = |rule: &Rule| match host {
            Host::Name(_) => rule.names(host),
            Host::Address(address) => rule.contains_embedded(*address),
        };
        if self.deny.iter().any(|rule| rule.has_port(port, true) && denied(rule)) {
            return Err("a rule denies it");
        }
        let reached = self.reach > Reach::Nothing && self.covers_unsaid(port);
        if reached || self.allowing(port).any(|rule| rule.names(host)) {
            return Ok(());
        }
        Err("no rule allows it")
    }

    /// Checks an address of a host that passed step 3; this is step 5 of the decision. Returns the
    /// reason of a denial. Expects a folded address.
    pub(crate) fn check_address(
        &self,
        host: &Host,
        port: u16,
        address: IpAddr,
    ) -> Result<(), &'static str> {
        if self.deny.iter().any(|rule| rule.has_port(port, true) && rule.contains_embedded(address))
        {
            return Err("a rule denies its address");
        }
        if address::is_metadata(address) {
            let named = self.allowing(port).any(|rule| rule.is_only(address));
            return if named { Ok(()) } else { Err("its address is a cloud's metadata service") };
        }
        let everything = self.reach == Reach::Everything && self.covers_unsaid(port);
        if everything || self.allowing(port).any(|rule| rule.contains(address)) {
            return Ok(());
        }
        if host.is_localhost() && self.allowing(port).any(|rule| rule.names(host)) {
            return if address.is_loopback() { Ok(()) } else { Err("its address is not loopback") };
        }
        address::special(address).map_or(Ok(()), Err)
    }

    /// Returns the addresses that [`resolve_to`](Self::resolve_to) set for a name.
    pub(crate) fn answer(&self, name: &str) -> Option<&[IpAddr]> {
        self.answers.get(name).map(Vec::as_slice)
    }

    /// Adds the injected headers for an origin to a request.
    pub(crate) fn inject(&self, origin: &Origin, headers: &mut HeaderMap) {
        self.injected.iter().for_each(|header| header.displace(origin, headers));
        self.injected.iter().for_each(|header| header.add(origin, headers));
    }

    fn allowing(&self, port: u16) -> impl Iterator<Item = &Rule> {
        let unsaid = self.covers_unsaid(port);
        self.allow.iter().filter(move |rule| rule.has_port(port, unsaid))
    }

    /// Returns `true` if a rule that allows without a port covers this one.
    fn covers_unsaid(&self, port: u16) -> bool {
        !self.strict_ports || matches!(port, 80 | 443)
    }
}
