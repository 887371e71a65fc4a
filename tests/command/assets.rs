//! Tests of the interpreter's files: a wrong file prevents the start and is named.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolet_pyodide_assets::lock;

use isolet_test_support::assets::{copy, image, run_with};
use isolet_test_support::{Scratch, assets_dir, command, isolet, isolet_fed};

/// Asserts that a start fails with one sentence that names `path`, and that the library returns the
/// same error.
fn is_refused(dir: &Path, path: &Path) {
    let ran = run_with(dir, "print('started')");
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)), "{ran:?}");
    let said = format!("`{}`", path.display());
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(&said), "{}", ran.stderr);
    let lines = ran.stderr.lines().filter(|line| !line.is_empty());
    let others = lines.skip(1).filter(|line| !line.starts_with("hint: "));
    assert_eq!(others.count(), 0, "{}", ran.stderr);
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Returns pairs of a file and whether there is an image, for all cases in which the file is
/// checked.
fn used() -> impl Iterator<Item = (&'static isolet_pyodide_assets::LockedFile, bool)> {
    let files = lock().unwrap().files().iter();
    files.flat_map(|file| {
        let always = file.name() == "pyodide-lock.json";
        [true, false]
            .into_iter()
            .filter(move |has_image| always || !has_image)
            .map(move |h| (file, h))
    })
}

#[test]
fn one_changed_byte_in_any_file_that_is_used_stops_the_start() {
    let scratch = copy("flip");
    let dir = scratch.path();
    let (image, aside) = (dir.join(image(dir)), dir.join("aside"));
    for (file, has_image) in used() {
        if !has_image {
            fs::rename(&image, &aside).unwrap();
        }
        let path = dir.join(file.name());
        let middle = usize::try_from(file.size()).unwrap() / 2;
        flip(&path, middle);
        is_refused(dir, &path);
        flip(&path, middle);
        if !has_image {
            fs::rename(&aside, &image).unwrap();
        }
    }
    assert_eq!(run_with(dir, "print('started')").stdout, "started\n");
}

#[test]
fn a_start_from_an_image_needs_nothing_that_is_in_it() {
    let scratch = copy("image-only");
    let dir = scratch.path();
    for name in ["pyodide.asm.wasm", "pyodide.asm.mjs", "python_stdlib.zip"] {
        fs::remove_file(dir.join(name)).unwrap();
    }
    assert_eq!(run_with(dir, "print('started')").stdout, "started\n");
}

#[test]
fn one_changed_byte_anywhere_in_the_image_stops_the_start() {
    let scratch = copy("flip-image");
    let dir = scratch.path();
    let path = dir.join(image(dir));
    let length = fs::read(&path).unwrap().len();
    for at in [0, 20, 50, 80, length / 2, length - 1] {
        flip(&path, at);
        is_refused(dir, &path);
        flip(&path, at);
    }
    assert_eq!(run_with(dir, "print('started')").stdout, "started\n");
}

#[test]
fn a_missing_or_cut_file_that_is_used_stops_the_start() {
    let scratch = copy("missing");
    let dir = scratch.path();
    let (image, aside) = (dir.join(image(dir)), dir.join("aside"));
    for (file, has_image) in used() {
        if !has_image {
            fs::rename(&image, &aside).unwrap();
        }
        let path = dir.join(file.name());
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        is_refused(dir, &path);
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        is_refused(dir, &path);
        fs::write(&path, bytes).unwrap();
        if !has_image {
            fs::rename(&aside, &image).unwrap();
        }
    }
    let bytes = fs::read(&image).unwrap();
    for length in [0, 10, 90, bytes.len() - 1] {
        fs::write(&image, &bytes[..length]).unwrap();
        is_refused(dir, &image);
    }
}

#[cfg(unix)]
#[test]
fn an_image_that_others_may_have_written_is_not_used() {
    use std::os::unix::fs::PermissionsExt;

    let scratch = copy("others-image");
    let dir = scratch.path();
    let image = dir.join(image(dir));
    for mode in [0o664, 0o646] {
        fs::set_permissions(&image, fs::Permissions::from_mode(mode)).unwrap();
        is_refused(dir, &image);
    }
    // After it is prepared again, nobody else could have written it.
    let prepared = command(["assets", "prepare"])
        .env(isolet_test_support::ASSETS_VARIABLE, dir)
        .output()
        .unwrap();
    assert!(prepared.status.success(), "{prepared:?}");
    assert_eq!(fs::metadata(&image).unwrap().permissions().mode() & 0o022, 0);
    assert_eq!(run_with(dir, "print('started')").stdout, "started\n");
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let scratch = Scratch::new("nowhere");
    let dir = scratch.path().join("nosuch");
    let ran = run_with(&dir, "1");
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("nosuch") && ran.stderr.contains("nosuch assets fetch` fetches it"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_image_is_made_beside_those_of_two_other_keys_and_older_ones_go() {
    let scratch = copy("stale");
    let dir = scratch.path();
    let name = image(dir);
    let others = ["0123456789abcdef", "1123456789abcdef", "2123456789abcdef"];
    let others = others.map(|key| dir.join(format!("image-{key}.bin")));
    fs::rename(dir.join(&name), &others[0]).unwrap();
    let made = fs::metadata(&others[0]).unwrap().modified().unwrap();
    for (nth, other) in (1..).zip(&others[1..]) {
        fs::write(other, "").unwrap();
        let file = fs::File::options().write(true).open(other).unwrap();
        file.set_modified(made + Duration::from_secs(nth)).unwrap();
    }
    assert_eq!(run_with(dir, "print('started')").stdout, "started\n");
    assert_eq!(others.map(|other| other.exists()), [false, true, true]);
    assert!(dir.join(&name).exists());
    let left: Vec<_> =
        fs::read_dir(dir).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{left:?}");
    // Renaming it to the right name does not help.
    fs::copy(assets_dir().join(image(&assets_dir())), dir.join(&name)).unwrap();
    flip(&dir.join(&name), 17);
    is_refused(dir, &dir.join(&name));
}

/// Root may write anywhere, so as root this test shows only that nothing breaks.
#[test]
fn where_no_image_can_be_stored_it_serves_from_memory() {
    let scratch = copy("unwritable");
    let dir = scratch.path();
    let name = image(dir);
    fs::remove_file(dir.join(&name)).unwrap();
    let mut permissions = fs::metadata(dir).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(dir, permissions.clone()).unwrap();
    let ran = run_with(dir, "print('started')");
    #[expect(
        clippy::permissions_set_readonly_false,
        reason = "its own directory, removed at once"
    )]
    permissions.set_readonly(false);
    fs::set_permissions(dir, permissions).unwrap();
    assert_eq!((ran.stdout.as_str(), ran.code), ("started\n", Some(0)), "{}", ran.stderr);
}

#[test]
fn verify_says_which_file_is_wrong() {
    let ran = isolet(["assets", "verify"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for file in lock().unwrap().files() {
        assert!(ran.stdout.contains(&format!("{}: ok\n", file.name())), "{}", ran.stdout);
    }
    let scratch = copy("verify");
    let wrong = scratch.path().join("pyodide-lock.json");
    flip(&wrong, 100);
    let args = ["--assets", scratch.path().to_str().unwrap(), "assets", "verify"];
    let ran = isolet(args);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stdout.contains(&format!("asset `{}` has the wrong sha256", wrong.display())));
    assert!(ran.stdout.contains("pyodide.asm.wasm: ok\n"));
}

#[test]
fn the_option_comes_before_the_variable() {
    let dir = PathBuf::from("/nosuch/dir");
    let ran = isolet(["assets", "path"]);
    assert_eq!(ran.stdout, format!("{}\n", assets_dir().display()));
    let ran = isolet_fed(["assets", "path", "--assets", dir.to_str().unwrap()], "");
    assert_eq!(ran.stdout, "/nosuch/dir\n");
}
