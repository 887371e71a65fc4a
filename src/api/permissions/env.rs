//! The guest's environment: named variables, copied at the time that they are allowed.

use crate::data::error::{Error, ErrorKind};
use crate::net::rules::Secrets;

/// The home directory that every guest has.
const HOME: (&str, &str) = ("HOME", "/home/user");

/// Returns the environment that a guest starts with: `HOME`, the allowed variables, and those of
/// secrets with their placeholders.
///
/// # Errors
///
/// [`ErrorKind::Config`] if a name is empty or contains `=`, a name or value contains NUL, or a
/// variable is that of a secret.
pub(crate) fn environment(
    allowed: &[(String, String)],
    secrets: &Secrets,
) -> Result<Vec<(String, String)>, Error> {
    let mut environment = vec![(HOME.0.to_owned(), HOME.1.to_owned())];
    for (name, value) in allowed {
        check_name(name)?;
        if value.contains('\0') {
            let message = format!("the value of environment variable `{name}` holds a NUL");
            return Err(Error::new(ErrorKind::Config, message));
        }
        if secrets.variables().any(|(secret, _)| secret == name) {
            let message = format!(
                "the environment variable `{name}` is to have a value and to be a secret, which \
                 the guest must not see; leave one of them out"
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        environment.push((name.clone(), value.clone()));
    }
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    environment.extend(secrets.variables().map(owned));
    Ok(environment)
}

/// Returns the value of one of the host's variables.
///
/// # Errors
///
/// [`ErrorKind::Config`] if the name is invalid or the value is not Unicode.
pub(crate) fn inherited(name: &str) -> Result<Option<String>, Error> {
    check_name(name)?;
    #[expect(clippy::disallowed_methods, reason = "the owner named this one variable")]
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::new(
            ErrorKind::Config,
            format!("the value of environment variable `{name}` is not Unicode"),
        )),
    }
}

/// Returns the names of the host's variables that a guest could be given.
pub(crate) fn names() -> Vec<String> {
    #[expect(clippy::disallowed_methods, reason = "the owner asked for all of them")]
    let variables = std::env::vars_os();
    let unicode = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        value.into_string().ok().and(name.into_string().ok())
    };
    variables.filter_map(unicode).filter(|name| check_name(name).is_ok()).collect()
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.contains(['=', '\0']) {
        let message = format!("`{}` is no name of an environment variable", name.escape_debug());
        return Err(Error::new(ErrorKind::Config, message));
    }
    Ok(())
}
