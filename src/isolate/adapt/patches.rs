//! Applies the patches of the pinned release (`pyodide-assets/patches/`) to Pyodide's module.

use std::fmt::Write as _;

use isolet_pyodide_assets::Patch;

/// Replaces what each patch finds. If there is one whose text is not there exactly once, the error
/// names all of them: who moves to another `version` of Pyodide wants to know at once.
pub(super) fn apply(module: &str, patches: &[Patch], version: &str) -> Result<String, String> {
    let (mut text, mut misfits) = (module.to_owned(), Vec::new());
    for patch in patches {
        match text.matches(patch.find()).count() {
            1 => text = text.replacen(patch.find(), patch.replace(), 1),
            times => misfits.push((patch.name(), times)),
        }
    }
    if misfits.is_empty() {
        return Ok(text);
    }
    let mut message = format!(
        "`pyodide.asm.mjs` is not what {} of {} patches for Pyodide {version} expect, \
         each of which matches once:",
        misfits.len(),
        patches.len()
    );
    for (nth, (name, times)) in misfits.into_iter().enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let plural = if times == 1 { "" } else { "s" };
        // Writing to a string does not fail.
        let _ = write!(message, "{comma} `{name}` matches {times} time{plural}");
    }
    Err(message)
}

#[cfg(test)]
mod tests {
    use isolet_pyodide_assets::{Assets, lock, patches};

    use super::*;
    use crate::isolate::assets_dir;

    #[test]
    fn each_patch_applies_exactly_once_to_the_pinned_release() {
        let assets = Assets::open(&assets_dir()).unwrap();
        let module = std::str::from_utf8(assets.asm_mjs()).unwrap();
        let patches = patches().unwrap();
        for patch in patches {
            assert_eq!(module.matches(patch.find()).count(), 1, "{}", patch.name());
        }
        let changed = apply(module, patches, lock().unwrap().version()).unwrap();
        for patch in patches {
            assert!(changed.contains(patch.replace()), "{}", patch.name());
        }
    }

    #[test]
    fn all_patches_that_do_not_fit_are_named_with_how_often_they_match() {
        let patches = patches().unwrap();
        let [first, second, third, rest @ ..] = patches else { panic!("{}", patches.len()) };
        let mut module = format!("{}{}{}", second.find(), third.find(), third.find());
        module.extend(rest.iter().map(Patch::find));
        assert_eq!(
            apply(&module, patches, "1.2.3").unwrap_err(),
            format!(
                "`pyodide.asm.mjs` is not what 2 of {} patches for Pyodide 1.2.3 expect, each of \
                 which matches once: `{}` matches 0 times, `{}` matches 2 times",
                patches.len(),
                first.name(),
                third.name()
            )
        );
    }
}
