//! Tests of bundles: code imports their packages without permission, and sessions start from images
//! that have imported them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isolet::{
    Access, Bundle, Cell, Engine, EngineBuilder, Isolation, Outcome, Permissions, Sandbox, Session,
    SetImages, Value,
};

use crate::util::{Scratch, engine_builder, eval, exec, isolation, wheel, wheel_that_needs};

/// How long an image may take that is made in the background.
const PATIENCE: Duration = Duration::from_mins(3);

/// What the module draws when it is imported: the same in all sessions that start from an image.
const APPLES: &str =
    "import seeds, os\nDRAWN = os.urandom(8).hex()\n\n\ndef count():\n    return seeds.COUNT\n";

struct Made {
    scratch: Scratch,
    bundle: Bundle,
}

impl Made {
    fn builder(&self) -> EngineBuilder {
        engine_builder().images(images()).bundle(self.bundle.clone())
    }

    /// Makes the image of the only set, if no other test has: their bundles are the same.
    fn prepare(&self) {
        let builder = self.builder().set_images(SetImages::Ignore);
        let builder = builder.preload("apples").unwrap().preload("seeds").unwrap();
        assert!(builder.build().unwrap().image_path().is_some());
    }

    fn engine(&self) -> Engine {
        self.builder().build().unwrap()
    }
}

/// The directory of the tests' images.
fn images() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("bundle-images")
}

/// Makes a bundle of `apples`, which needs `seeds`, and of `pears`.
async fn made(name: &str) -> Made {
    let scratch = Scratch::new(name);
    let (wheels, directory) = (scratch.path().join("wheels"), scratch.path().join("bundle"));
    fs::create_dir(&wheels).unwrap();
    wheel_that_needs(&wheels, "apples", "1.0", APPLES, &["seeds>=2"]);
    wheel(&wheels, "seeds", "2.0", "COUNT = 5\n");
    wheel(&wheels, "pears", "1.0", "RIPE = True\n");
    let engine = engine_builder().build().unwrap();
    let sources = Permissions::none().wheels(&wheels).offline_packages();
    let sources = sources.package_cache(scratch.path().join("cache"));
    let sandbox = Sandbox::builder(&engine).permissions(sources).build().unwrap();
    let set: BTreeSet<String> = ["apples", "seeds"].map(str::to_owned).into();
    sandbox.bundle_packages(["apples", "pears"], [set], &directory).await.unwrap();
    let bundle = Bundle::open(&directory).unwrap();
    Made { scratch, bundle }
}

async fn session(engine: &Engine) -> Session {
    Sandbox::builder(engine).build().unwrap().session().await.unwrap()
}

async fn drawn(session: &mut Session) -> Value {
    eval(session, "import apples; apples.DRAWN").await
}

fn change(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes[100] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn code_imports_what_is_in_it_with_what_that_needs_and_the_bytecode() {
    let made = made("bundle-import").await;
    let names: Vec<(String, bool)> =
        made.bundle.packages().map(|package| (package.name, package.is_asked)).collect();
    let expected = [("apples", true), ("pears", true), ("seeds", false)];
    assert_eq!(names, expected.map(|(name, is_asked)| (name.to_owned(), is_asked)));
    let engine = made.builder().set_images(SetImages::Ignore).build().unwrap();
    let mut session = session(&engine).await;
    let code = "
import os, sys
before = 'seeds' in sys.modules
import apples
[before, apples.count(), os.path.exists(apples.__cached__), os.listdir(os.path.dirname(apples.__file__))]";
    let Value::List(found) = eval(&mut session, code).await else { panic!("a list") };
    assert_eq!(found[..3], [false.into(), 5.into(), true.into()]);
    // Only what was imported is loaded.
    assert!(!format!("{:?}", found[3]).contains("pears"), "{:?}", found[3]);
    assert_eq!(eval(&mut session, "import pears; pears.RIPE").await, true.into());
}

#[tokio::test]
async fn sandboxes_can_do_without_it() {
    let made = made("bundle-forbidden").await;
    let permissions = Permissions::none().forbid_bundle();
    let engine = made.engine();
    let sandbox = Sandbox::builder(&engine).permissions(permissions).build().unwrap();
    let execution = sandbox.run("import apples").await.unwrap();
    assert_eq!(execution.exception().unwrap().message, "No module named 'apples'");
}

#[tokio::test]
async fn a_wheel_that_was_changed_is_refused() {
    let made = made("bundle-changed").await;
    change(&made.bundle.directory().join("seeds-2.0-py3-none-any.whl"));
    let engine = made.builder().set_images(SetImages::Ignore).build().unwrap();
    let execution = session(&engine).await.run("import apples").await.unwrap();
    let exception = execution.exception().unwrap();
    assert_eq!(exception.type_name, "ImportError");
    let told = &exception.message;
    assert!(told.starts_with("`seeds-2.0-py3-none-any.whl` has sha256"), "{told}");
}

#[tokio::test]
async fn a_missing_module_says_which_packages_there_are() {
    let made = made("bundle-missing").await;
    let mut session = session(&made.engine()).await;
    let execution = session.run("import plums").await.unwrap();
    let traceback = &execution.exception().unwrap().traceback;
    assert!(traceback.contains("ModuleNotFoundError: No module named 'plums'"), "{traceback}");
    assert!(traceback.contains("can install no others: apples, pears"), "{traceback}");
    // A part that a package lacks is another matter.
    let execution = session.run("import apples.core").await.unwrap();
    let traceback = &execution.exception().unwrap().traceback;
    assert!(!traceback.contains("can install"), "{traceback}");
}

#[tokio::test]
async fn a_session_starts_from_the_image_of_what_its_first_code_imports() {
    let made = made("bundle-image").await;
    made.prepare();
    let engine = made.engine();
    let first = drawn(&mut session(&engine).await).await;
    let mut other = session(&engine).await;
    // What was there before the code is there still.
    other.set("number", 7).await.unwrap();
    other.files().put("/home/user/notes/a.txt", "text").await.unwrap();
    other.run(Cell::new("").working_directory("/home/user/notes")).await.unwrap();
    assert_eq!(drawn(&mut other).await, first);
    let code = "[number, open('a.txt').read(), 'numpy' in __import__('sys').modules]";
    let expected = Value::List(vec![7.into(), "text".into(), false.into()]);
    assert_eq!(eval(&mut other, code).await, expected);
    // One that has run code keeps its interpreter, and imports the packages itself.
    let mut used = session(&engine).await;
    exec(&mut used, "mine = 1").await;
    assert_ne!(drawn(&mut used).await, first);
    assert_eq!(eval(&mut used, "mine").await, 1.into());
}

#[tokio::test]
async fn handles_and_forks_follow_the_session_to_its_image() {
    let made = made("bundle-handles").await;
    made.prepare();
    let engine = made.engine();
    let is_process = isolation() == Isolation::Process;
    let builder = Sandbox::builder(&engine).checkpoint(true);
    let builder = if is_process { builder.forkable(2) } else { builder };
    let sandbox = builder.build().unwrap();
    let first = drawn(&mut sandbox.session().await.unwrap()).await;
    let mut session = sandbox.session().await.unwrap();
    let handle = session.handle();
    assert_eq!(drawn(&mut session).await, first);
    exec(&mut session, "number = apples.count()").await;
    assert_eq!(handle.get("number").await.unwrap(), Some(5.into()));
    if is_process {
        let mut fork = session.fork().await.unwrap();
        assert_eq!(drawn(&mut fork).await, first);
    }
    // Where the interpreter ends, the session goes on in the same image.
    session.checkpoint().await.unwrap();
    let ended = session.run("import os; os._exit(3)").await.unwrap();
    assert!(ended.session_alive());
    assert_eq!(drawn(&mut session).await, first);
    assert_eq!(handle.get("number").await.unwrap(), Some(5.into()));
}

#[tokio::test]
async fn a_session_is_saved_over_its_image_and_restored_from_it() {
    let made = made("bundle-saved").await;
    made.prepare();
    let engine = made.engine();
    let file = made.scratch.path().join("saved");
    let mut original = session(&engine).await;
    let first = drawn(&mut original).await;
    exec(&mut original, "import pears; kept = apples.count()").await;
    original.save(&file).await.unwrap();
    let sandbox = Sandbox::builder(&made.engine()).build().unwrap();
    let mut restored = sandbox.restore(&file).await.unwrap();
    assert_eq!(drawn(&mut restored).await, first);
    let kept = eval(&mut restored, "[kept, pears.RIPE]").await;
    assert_eq!(kept, Value::List(vec![5.into(), true.into()]));
    // One that was saved over the plain image stays there.
    let mut plain = session(&engine).await;
    exec(&mut plain, "x = 1").await;
    plain.save(&file).await.unwrap();
    let mut restored = sandbox.restore(&file).await.unwrap();
    assert_ne!(drawn(&mut restored).await, first);
}

#[tokio::test]
async fn an_audit_log_misses_no_package_for_an_image() {
    let made = made("bundle-audit").await;
    made.prepare();
    let packages = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&packages);
    let sandbox = Sandbox::builder(&made.engine()).on_audit(move |event| {
        if let Access::Package { name } = &event.access {
            told.lock().unwrap().push(name.clone());
        }
    });
    let mut session = sandbox.build().unwrap().session().await.unwrap();
    drawn(&mut session).await;
    assert_eq!(*packages.lock().unwrap(), ["apples 1.0", "seeds 2.0"]);
}

#[tokio::test]
async fn packages_that_read_the_environment_when_they_are_imported_get_the_sessions_own() {
    let made = made("bundle-environment").await;
    made.prepare();
    let engine = made.engine();
    let first = drawn(&mut session(&engine).await).await;
    let of = |name: &str| {
        let permissions = Permissions::none().env(name, "x");
        Sandbox::builder(&engine).permissions(permissions).build().unwrap()
    };
    assert_ne!(drawn(&mut of("MPLBACKEND").session().await.unwrap()).await, first);
    assert_eq!(drawn(&mut of("COLUMNS").session().await.unwrap()).await, first);
}

#[tokio::test]
async fn an_image_that_is_missed_is_made_in_the_background_and_a_person_is_told() {
    let made = made("bundle-background").await;
    let said = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&said);
    let tell = move |text: &str| told.lock().unwrap().push(text.to_owned());
    let builder = made.builder().images(made.scratch.path().join("images"));
    let engine = builder.set_images(SetImages::Make).on_notice(tell).build().unwrap();
    let mut first = session(&engine).await;
    let own = drawn(&mut first).await;
    let start = Instant::now();
    let shared = loop {
        let (a, b) =
            (drawn(&mut session(&engine).await).await, drawn(&mut session(&engine).await).await);
        if a == b {
            break a;
        }
        assert!(start.elapsed() < PATIENCE, "there is no image");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_ne!(own, shared);
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("apples, seeds") && said[0].contains("packages prepare"), "{said:?}");
}

#[tokio::test]
async fn no_image_is_made_again_and_again_where_it_cannot_be_kept() {
    let made = made("bundle-unkept").await;
    let images = made.scratch.path().join("images");
    fs::create_dir(&images).unwrap();
    // Others could replace what is in it.
    fs::set_permissions(&images, fs::Permissions::from_mode(0o777)).unwrap();
    let said = Arc::<Mutex<Vec<String>>>::default();
    let told = Arc::clone(&said);
    let builder = made.builder().images(&images).set_images(SetImages::Make);
    let builder = builder.on_notice(move |text| told.lock().unwrap().push(text.to_owned()));
    let engine = builder.build().unwrap();
    let mut session = session(&engine).await;
    assert_eq!(eval(&mut session, "import apples; apples.count()").await, 5.into());
    assert!(said.lock().unwrap().is_empty(), "{said:?}");
    assert_eq!(fs::read_dir(&images).unwrap().count(), 0);
}

#[test]
fn a_bundle_for_another_interpreter_or_of_another_form_is_refused_with_both() {
    let scratch = Scratch::new("bundle-refused");
    let path = scratch.path().join("bundle.json");
    let refusal = |text: &str| {
        fs::write(&path, text).unwrap();
        Bundle::open(scratch.path()).unwrap_err().to_string()
    };
    let text = r#"{"form": 1, "python": "3.13.0", "abi": "2025_0", "packages": [], "sets": []}"#;
    let refused = refusal(text);
    assert!(refused.contains("3.13.0") && refused.contains("expected Python 3.14"), "{refused}");
    let refused = refusal(&text.replace("\"form\": 1", "\"form\": 2"));
    assert!(refused.contains("its format is 2, expected 1"), "{refused}");
    assert!(refusal("{").contains("cannot be used as a bundle"));
    fs::remove_file(&path).unwrap();
    let missing = Bundle::open(scratch.path()).unwrap_err().to_string();
    assert!(missing.contains("its `bundle.json` cannot be read"), "{missing}");
}

#[tokio::test]
async fn permission_by_name_goes_before_the_bundle() {
    let made = made("bundle-named").await;
    let wheels = made.scratch.path().join("newer");
    fs::create_dir(&wheels).unwrap();
    wheel(&wheels, "pears", "2.0", "RIPE = False\n");
    let permissions = Permissions::none().wheels(&wheels).offline_packages();
    let permissions = permissions.package_cache(made.scratch.path().join("cache2"));
    let permissions = permissions.allow_package("pears>=2").unwrap();
    let engine = made.engine();
    let sandbox = Sandbox::builder(&engine).permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "import pears, apples; [pears.RIPE, apples.count()]";
    assert_eq!(eval(&mut session, code).await, Value::List(vec![false.into(), 5.into()]));
    let execution = session.run("import plums").await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Raised(_)));
}
