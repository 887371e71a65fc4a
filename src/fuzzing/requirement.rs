//! What packages say of themselves and of each other.

use std::collections::BTreeSet;

use crate::packages::marker;
use crate::packages::metadata::Metadata;
use crate::packages::requirement::{Dependency, Requirement, is_name, normalised};
use crate::packages::script::script_requirements;
use crate::packages::wheel_name::WheelName;

/// The most packages that a script may ask for, and that a wheel may need.
const MAX_OF_SCRIPT: usize = 1000;
const MAX_OF_WHEEL: usize = 5000;

/// Reads text as a requirement, a marker, the name of a wheel, a script and a wheel's metadata. A
/// requirement is written for pip as one word that is no option, path or URL, and is read as the
/// same again; a marker means the same in parentheses; names are in their one spelling.
pub fn requirement(data: &[u8]) {
    metadata(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(requirement) = text.parse::<Requirement>() {
        is_one_word(&requirement);
        assert!(text.parse::<Dependency>().is_ok(), "{text:?}");
    }
    if let Ok(dependency) = text.parse::<Dependency>() {
        applies(&dependency);
    }
    for extra in ["", "x"] {
        marker_is_stable(text, extra);
    }
    if let Ok(wheel) = text.parse::<WheelName>() {
        is_normal(&wheel.name);
        assert!(text.is_ascii() && !text.contains(['/', '\\', ':']), "{text:?}");
    }
    if let Ok(requirements) = script_requirements(text) {
        assert!(requirements.len() <= MAX_OF_SCRIPT);
        requirements.iter().for_each(is_one_word);
    }
}

/// It is safe as an argument of pip, and means the same when it is read again.
fn is_one_word(requirement: &Requirement) {
    let written = requirement.to_string();
    assert!(written.starts_with(|c: char| c.is_ascii_alphanumeric()), "{written:?}");
    let odd = |c: char| !c.is_ascii_graphic() || r#"/\@;:#$%&'"`?{}|^"#.contains(c);
    assert!(!written.contains(odd), "{written:?}");
    is_normal(requirement.name());
    requirement.extras().iter().for_each(|extra| is_normal(extra));
    let again = written.parse::<Requirement>();
    assert!(again.as_ref().is_ok_and(|again| again == requirement), "{written:?}: {again:?}");
    assert_eq!(again.map(|again| again.to_string()).ok(), Some(written));
}

fn is_normal(name: &str) {
    assert!(is_name(name), "{name:?}");
    assert_eq!(normalised(name), name);
    assert!(!name.contains("--") && !name.contains(['_', '.']), "{name:?}");
}

/// One extra more takes nothing away.
fn applies(dependency: &Dependency) {
    is_one_word(&dependency.requirement);
    let with = |extras: &[&str]| {
        let extras: BTreeSet<String> = extras.iter().map(|&extra| extra.to_owned()).collect();
        dependency.applies(&extras).ok()
    };
    if with(&[]) == Some(true) {
        assert_eq!(with(&["x"]), Some(true), "{dependency:?}");
    }
    assert_eq!(with(&["x", "y"]).is_some(), with(&["y", "x"]).is_some());
}

/// A marker means the same in parentheses, unless they are too many, and with itself.
fn marker_is_stable(text: &str, extra: &str) {
    let Ok(value) = marker::holds(text, extra) else { return };
    for same in [format!("{text} and {text}"), format!("{text} or {text}")] {
        assert_eq!(marker::holds(&same, extra), Ok(value), "{same:?}");
    }
    let wrapped = format!("({text})");
    match marker::holds(&wrapped, extra) {
        Ok(again) => assert_eq!(again, value, "{wrapped:?}"),
        Err(reason) => assert!(reason.contains("nested deeper"), "{wrapped:?}: {reason}"),
    }
}

fn metadata(data: &[u8]) {
    let Ok(metadata) = Metadata::parse(data) else { return };
    assert!(metadata.requires.len() <= MAX_OF_WHEEL);
    let texts = [&metadata.name, &metadata.version].into_iter().chain(&metadata.requires);
    for text in texts.chain(&metadata.requires_python) {
        assert!(!text.contains('\n') && text.trim() == text, "{text:?}");
    }
    if metadata.requires_python.is_none() {
        assert!(metadata.fits_python());
    }
    metadata.fits_python();
    for text in metadata.requires.iter().take(8) {
        if let Ok(dependency) = text.parse::<Dependency>() {
            applies(&dependency);
        }
    }
}
