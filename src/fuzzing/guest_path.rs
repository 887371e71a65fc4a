//! Paths beneath a mount, as the guest spells them, and targets of its links.

use std::path::{Component, Path};

use crate::fs::FileLimits;
use crate::fs::path::{RelativePath, check_target, climbs, join, rest_beneath};

/// Parts an input; it is in no UTF-8, so it is in no path.
const BETWEEN: u8 = 0xff;

/// Reads a path, and after a byte 0xFF the target of a link or the rest of the path. What is
/// accepted is relative, within the limits and has only plain names; a link stays beneath the
/// mount.
pub fn guest_path(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == BETWEEN);
    let mut text = || std::str::from_utf8(parts.next().unwrap_or_default());
    let (Ok(first), Ok(second)) = (text(), text()) else { return };
    let small = FileLimits { depth: 3, name_bytes: 8, path_bytes: 16, ..FileLimits::default() };
    for limits in [FileLimits::default(), small] {
        let Ok(path) = RelativePath::parse(first, &limits) else { continue };
        is_plain(path, first, &limits);
        takes_apart(path);
        if let Ok(rest) = RelativePath::parse(second, &limits) {
            goes_together(path, rest, &limits);
        }
        if check_target(path, second, &limits).is_ok() {
            stays_inside(path, second, &limits);
        }
    }
}

/// What is accepted is the text itself, a relative path of plain names.
fn is_plain(path: RelativePath<'_>, text: &str, limits: &FileLimits) {
    assert_eq!(path.as_str(), text);
    assert!(!text.contains('\0') && !text.starts_with('/') && !text.ends_with('/'), "{text:?}");
    // As the host's own reading of paths has it.
    let components: Vec<Component<'_>> = Path::new(text).components().collect();
    assert!(components.iter().all(|part| matches!(part, Component::Normal(_))), "{text:?}");
    assert_eq!(components.len() as u64, path.depth(), "{text:?}");
    assert!(!path.names().any(|name| matches!(name, "" | "." | "..")), "{text:?}");
    assert!(path.depth() <= limits.depth);
    assert!(text.len() as u64 <= limits.path_bytes);
    assert!(path.names().all(|name| name.len() as u64 <= limits.name_bytes));
}

/// A path is its parent, a slash and its last name, and beneath its parent.
fn takes_apart(path: RelativePath<'_>) {
    match path.split() {
        None => assert!(path.is_root()),
        Some((parent, name)) => {
            assert_eq!(join(parent.as_str(), name), path.as_str());
            assert_eq!(parent.depth() + 1, path.depth());
            assert_eq!(rest_beneath(path.as_str(), parent.as_str()), Some(name));
            assert!(path.is_beneath(parent) && path.is_beneath(RelativePath::ROOT));
            assert!(!parent.is_beneath(path) && !path.is_beneath(path));
        }
    }
}

/// Two paths, one beneath the other, are a path, unless it is too long.
fn goes_together(path: RelativePath<'_>, rest: RelativePath<'_>, limits: &FileLimits) {
    let joined = join(path.as_str(), rest.as_str());
    let fits =
        joined.len() as u64 <= limits.path_bytes && path.depth() + rest.depth() <= limits.depth;
    let parsed = RelativePath::parse(&joined, limits);
    assert_eq!(parsed.ok(), fits.then_some(RelativePath::joined(&joined)), "{joined:?}");
    let beneath = (!rest.is_root()).then_some(rest.as_str());
    assert_eq!(rest_beneath(&joined, path.as_str()), beneath);
}

/// A link's target does not climb above the mount, wherever on its way it is looked at.
fn stays_inside(link: RelativePath<'_>, target: &str, limits: &FileLimits) {
    assert!(!target.is_empty() && !target.contains('\0'), "{target:?}");
    assert!(target.len() as u64 <= limits.path_bytes);
    let mut inside: Vec<&str> = link.names().collect();
    inside.pop();
    for component in Path::new(target).components() {
        match component {
            Component::Normal(name) => inside.push(name.to_str().unwrap_or_default()),
            Component::ParentDir => assert!(inside.pop().is_some(), "{link:?} to {target:?}"),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => unreachable!("{target:?} is absolute"),
        }
    }
    let has_parent = Path::new(target).components().any(|part| part == Component::ParentDir);
    assert_eq!(climbs(target), has_parent, "{target:?}");
}
