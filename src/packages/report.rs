//! Parses pip's output: the report of a resolution, or the reason of a failure.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use isolet_pyodide_assets::Digest;
use pep440_rs::Version;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::error::{PackageError, shown};
use super::interpreter::MARKERS;
use super::requirement::{is_name, normalised};

/// The most wheels of a report, and the most dependencies or extras of one.
const MAX_LISTED: usize = 5_000;

/// A wheel that pip chose.
#[derive(Debug)]
pub(crate) struct Pin {
    /// The normalised name of the distribution.
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) digest: Digest,
    /// Its dependencies, as in its metadata.
    pub(crate) requires: Vec<String>,
    /// The extras that were asked for.
    pub(crate) extras: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Report {
    #[serde(deserialize_with = "few")]
    install: Vec<Item>,
    #[serde(deserialize_with = "known")]
    environment: BTreeMap<&'static str, String>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
    #[serde(default, deserialize_with = "few")]
    requested_extras: Vec<String>,
    download_info: DownloadInfo,
}

#[derive(Deserialize)]
struct ItemMetadata {
    name: String,
    version: String,
    #[serde(default, deserialize_with = "few")]
    requires_dist: Vec<String>,
}

#[derive(Deserialize)]
struct DownloadInfo {
    archive_info: Option<ArchiveInfo>,
}

#[derive(Deserialize)]
struct ArchiveInfo {
    #[serde(default)]
    hashes: Hashes,
}

#[derive(Deserialize, Default)]
struct Hashes {
    sha256: Option<String>,
}

/// Reads a list of at most [`MAX_LISTED`] elements.
fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Few<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut read = Vec::new();
            while let Some(one) = list.next_element()? {
                if read.len() == MAX_LISTED {
                    return Err(A::Error::custom(format!(
                        "limit {MAX_LISTED} in a list, has more"
                    )));
                }
                read.push(one);
            }
            Ok(read)
        }
    }

    from.deserialize_seq(Few(PhantomData))
}

/// Reads the markers that matter.
fn known<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<&'static str, String>, D::Error> {
    struct Known;

    impl<'de> Visitor<'de> for Known {
        type Value = BTreeMap<&'static str, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("markers")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
            let mut read = BTreeMap::new();
            while let Some((name, value)) = all.next_entry::<Cow<'de, str>, String>()? {
                if let Some((marker, _)) = MARKERS.iter().find(|(marker, _)| *marker == name) {
                    read.insert(*marker, value);
                }
            }
            Ok(read)
        }
    }

    from.deserialize_map(Known)
}

/// Parses a report of `pip install --report`.
///
/// # Errors
///
/// Fails if the report has another format, was not made for the guest's environment, or contains a
/// package without a sha256.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Pin>, PackageError> {
    let unusable = |reason: String| PackageError::Pip(reason);
    let report: Report = serde_json::from_slice(bytes).map_err(|error| {
        unusable(format!("its report cannot be read: {}", shown(&error.to_string())))
    })?;
    for (marker, wanted) in MARKERS {
        let has = report.environment.get(marker).map(String::as_str).unwrap_or_default();
        if has != wanted {
            let reason = format!("it resolved with {marker} {}, wanted {wanted}", shown(has));
            return Err(unusable(reason));
        }
    }
    report.install.into_iter().map(pin).collect()
}

fn pin(item: Item) -> Result<Pin, PackageError> {
    let ItemMetadata { name, version, requires_dist } = item.metadata;
    let unusable = |what: &str| PackageError::Pip(format!("it gives {} {what}", shown(&name)));
    if !is_name(&name) {
        return Err(unusable("as a name"));
    }
    let version = Version::from_str(&version).map_err(|_| unusable("no version"))?;
    let hashes = item.download_info.archive_info.map(|info| info.hashes).unwrap_or_default();
    let digest = hashes.sha256.and_then(|digest| digest.parse().ok());
    let digest = digest.ok_or_else(|| unusable("no sha256"))?;
    Ok(Pin {
        name: normalised(&name),
        version,
        digest,
        requires: requires_dist,
        extras: item.requested_extras.iter().map(|extra| normalised(extra)).collect(),
    })
}

/// Why pip failed.
#[derive(Debug, PartialEq)]
pub(crate) enum Failure {
    /// No packages meet the requirements.
    Unresolved(String),
    /// The package index did not answer, for this reason.
    Unreachable(Unreachable),
    /// pip did not work at all.
    Broken(String),
    /// pip wrote nothing.
    Silent,
}

/// Why the package index cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// Its name, or its proxy's, has no address.
    Name,
    Refused,
    Slow,
    /// Its certificate is of no authority that is trusted.
    Certificate,
    Proxy,
    /// It has no TLS, and pip is not told to trust it.
    Untrusted,
    Unknown,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "its name is not found",
            Self::Refused => "it refuses the connection",
            Self::Slow => "it does not answer in time",
            Self::Certificate => "its certificate is not trusted",
            Self::Proxy => "the proxy does not let the request through",
            Self::Untrusted => "it has no TLS, and `PIP_TRUSTED_HOST` does not name it",
            Self::Unknown => "the connection breaks",
        })
    }
}

impl Unreachable {
    /// Reads the reason in what pip says of a broken connection.
    fn of(warning: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| warning.contains(word));
        if has(&["CERTIFICATE_VERIFY_FAILED", "SSLError", "SSLCertVerificationError"]) {
            Self::Certificate
        } else if has(&["ProxyError"]) {
            Self::Proxy
        } else if has(&["NameResolutionError", "[Errno -2]", "[Errno -3]", "getaddrinfo failed"]) {
            Self::Name
        } else if has(&["Connection refused", "ConnectionRefusedError"]) {
            Self::Refused
        } else if has(&["Timeout", "timed out"]) {
            Self::Slow
        } else {
            Self::Unknown
        }
    }
}

/// What the program that runs pip says of a package that the index has, in no file that fits.
const NO_FILE_FITS: &str = "isolet: no file fits: ";

/// What is said of such a package.
pub(crate) const RUNS_HERE: &str =
    " runs here, which has to be pure Python or built for WebAssembly";

/// What pip says if no file fits, or there is none.
const NOT_FOUND: &str = "No matching distribution found for ";

/// Finds the reason of a failure in pip's standard error: the last error line except the general
/// one, without the names of servers.
pub(crate) fn failure(stderr: &str) -> Failure {
    const GENERAL: &str = "ResolutionImpossible";
    const CRASH: &str = "Exception:";
    let errors: Vec<&str> =
        stderr.lines().filter_map(|line| line.strip_prefix("ERROR: ")).collect();
    let last_line = stderr.lines().rev().find(|line| !line.trim().is_empty());
    if errors.is_empty() || errors.iter().any(|line| line.starts_with(CRASH)) {
        return last_line.map_or(Failure::Silent, |line| Failure::Broken(without_servers(line)));
    }
    let special = errors.iter().rev().find(|line| !line.starts_with(GENERAL));
    let reason = without_servers(special.copied().unwrap_or(GENERAL));
    if let Some(wanted) = reason.strip_prefix(NOT_FOUND) {
        let unfit = stderr.lines().filter_map(|line| line.strip_prefix(NO_FILE_FITS));
        let name_of = |text: &str| {
            let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            normalised(&text.chars().take_while(is_part).collect::<String>())
        };
        if unfit.clone().any(|name| name_of(name) == name_of(wanted)) {
            return Failure::Unresolved(format!("no wheel of {wanted}{RUNS_HERE}"));
        }
    }
    if stderr.lines().any(|line| line.contains("is not a trusted or secure host")) {
        return Failure::Unreachable(Unreachable::Untrusted);
    }
    let broken = stderr.lines().rev().find(|line| line.starts_with("WARNING: Retrying"));
    match broken {
        Some(warning) => Failure::Unreachable(Unreachable::of(warning)),
        None => Failure::Unresolved(reason),
    }
}

/// Removes URLs and host names from a line. Of a long line, keeps its beginning and its end.
fn without_servers(line: &str) -> String {
    const HALF_CHARS: usize = 200;
    let is_server = |word: &str| ["://", "host=", "@"].iter().any(|sign| word.contains(sign));
    // First, so that none of them parts what is a server without it.
    let line: String = line.chars().filter(|c| c.is_whitespace() || !c.is_control()).collect();
    let words = line.split_whitespace();
    let words: Vec<&str> =
        words.map(|word| if is_server(word) { "(a server)" } else { word }).collect();
    let text: Vec<char> = words.join(" ").chars().collect();
    match (text.first_chunk::<HALF_CHARS>(), text.last_chunk::<HALF_CHARS>()) {
        (Some(first), Some(last)) if text.len() > 2 * HALF_CHARS => {
            first.iter().chain(&[' ', '…', ' ']).chain(last).collect()
        }
        _ => text.iter().collect(),
    }
}
