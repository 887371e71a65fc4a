//! Tests of packages that an engine preloads: every session has them from the start, and they work
//! as if imported there.

use std::fs;

use isolet_test_support::{Ran, Scratch, command, wheel};

#[test]
fn the_command_starts_with_a_package() {
    // No package is allowed to be loaded on import.
    let code = "import sys; print('msgspec' in sys.modules)";
    let args = ["run", "--preload", "pydantic", "--preload", "msgspec", "-c", code];
    let cache = Scratch::new("preload-command");
    let ran: Ran = command(args).env("XDG_CACHE_HOME", cache.path()).output().unwrap().into();
    assert_eq!((ran.stdout.as_str(), ran.code), ("True\n", Some(0)), "{ran:?}");
}

/// Runs the command with a cache of its own.
fn cached(cache: &Scratch, args: &[&str]) -> Ran {
    command(args).env("XDG_CACHE_HOME", cache.path()).output().unwrap().into()
}

fn images(cache: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(cache.path().join("isolet/images")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_image = |name: &String| !name.starts_with('.') && name.rsplit('.').next() != Some("for");
    names.filter(is_image).collect()
}

/// Makes a wheel of a module that says when it is imported, unless an image is made.
fn telling(work: &Scratch, module: &str) -> Vec<String> {
    wheel(work.path(), "telling", "1", module);
    let wheels = work.path().to_str().unwrap();
    ["run", "--quiet", "--offline", "--wheels", wheels].map(str::to_owned).into()
}

#[test]
fn images_are_in_the_users_cache_listed_and_removed_there() {
    let work = Scratch::new("preload-cache");
    let run = telling(&work, "SAW = 1\n");
    let code = "import sys; print('telling' in sys.modules)";
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    let ran = cached(&work, &[&run[..], &["--preload", "telling", "-c", code]].concat());
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("True\n", ""), "{ran:?}");
    let [image] = &images(&work)[..] else { panic!("{:?}", images(&work)) };
    let list = cached(&work, &["cache", "list"]);
    let line = list.stdout.lines().find(|line| line.contains(image)).unwrap();
    assert!(line.ends_with("  telling"), "{list:?}");
    let listed = cached(&work, &["cache", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let entries = listed["entries"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["name"] == **image).unwrap();
    assert_eq!(entry["for"], "telling");
    cached(&work, &["cache", "clean", "images"]);
    let left = fs::read_dir(work.path().join("isolet/images")).unwrap().count();
    assert_eq!((images(&work).len(), left), (0, 0));
}

#[test]
fn a_package_that_no_image_can_hold_is_loaded_and_that_is_remembered() {
    let work = Scratch::new("preload-refused");
    let run = telling(&work, "import js\nkept = js.Object.new()\n");
    let ran = |option: &str| {
        let run: Vec<&str> = run.iter().map(String::as_str).collect();
        let more = [option, "telling", "-c", "import telling; print(telling.kept.typeof)"];
        let ran = cached(&work, &[&run[..], &more].concat());
        assert_eq!((ran.stdout.as_str(), ran.code), ("object\n", Some(0)), "{ran:?}");
        ran.stderr
    };
    assert_eq!(ran("--allow-package"), "");
    assert_eq!(images(&work), Vec::<String>::new());
    let warning = ran("--preload");
    let [refusal] = &images(&work)[..] else { panic!("{:?}", images(&work)) };
    assert!(refusal.ends_with(".refused"), "{refusal}");
    let path = work.path().join("isolet/images").join(refusal);
    let made = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(ran("--preload"), warning);
    assert!(warning.starts_with("warning: telling cannot be preloaded and is loaded instead: "));
    assert_eq!(warning.lines().count(), 1, "{warning}");
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), made);
}
