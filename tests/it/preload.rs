//! Tests of packages that an engine preloads: every session has them from the start, and they work
//! as if imported there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::LazyLock;

use isolet::{Engine, EngineBuilder, ErrorKind, Limits, Permissions, Sandbox, Session, Value};

use crate::garbage::{cycles_do_not_pile_up, objects_of_the_image_are_immortal};
use crate::util::{Scratch, eval, wheel};

/// Two packages with native modules. One of them depends on two others.
const PACKAGES: [&str; 2] = ["pydantic", "msgspec"];

struct Preloaded {
    engine: Engine,
    images: Scratch,
}

static PRELOADED: LazyLock<Preloaded> = LazyLock::new(|| {
    let images = Scratch::new("preload");
    let engine = engine(images.path());
    Preloaded { engine, images }
});

fn builder(images: &Path) -> EngineBuilder {
    let builder = crate::util::engine_builder().images(images);
    PACKAGES.into_iter().fold(builder, |builder, package| builder.preload(package).unwrap())
}

fn engine(images: &Path) -> Engine {
    builder(images).build().unwrap()
}

async fn session() -> Session {
    Sandbox::builder(&PRELOADED.engine).build().unwrap().session().await.unwrap()
}

#[tokio::test]
async fn they_are_imported_in_every_session_and_nothing_is_allowed_for_it() {
    // Enough that the last workers, if there are workers, are copies of a template.
    for _ in 0..4 {
        let code = "
import sys
was_there = [name in sys.modules for name in ('pydantic', 'pydantic_core', 'msgspec', 'json')]
import msgspec, pydantic
class Point(pydantic.BaseModel):
    x: int
    y: float = 0.5
point = Point.model_validate_json(msgspec.json.encode({'x': '7'}))
[was_there, point.x, point.y, msgspec.json.decode(b'[1, 2]', type=list[int])]";
        let expected = Value::List(vec![
            Value::List(vec![true.into(); 4]),
            7.into(),
            0.5.into(),
            Value::List(vec![1.into(), 2.into()]),
        ]);
        assert_eq!(eval(&mut session().await, code).await, expected);
    }
}

#[tokio::test]
async fn their_native_code_raises_and_calls_back_as_ever() {
    let code = "
import pydantic, msgspec
class Even(pydantic.BaseModel):
    n: int
    @pydantic.field_validator('n')
    @classmethod
    def even(cls, n):
        if n % 2:
            raise ValueError('odd')
        return n
said = []
for make in (lambda: Even(n=3), lambda: Even(n='x'), lambda: msgspec.json.decode(b'{')):
    try:
        make()
    except Exception as error:
        said.append(type(error).__name__)
[said, Even(n='4').n, msgspec.convert({'n': 1}, type('N', (msgspec.Struct,), {'__annotations__': {'n': int}})).n]";
    let expected = Value::List(vec![
        Value::List(vec!["ValidationError".into(), "ValidationError".into(), "DecodeError".into()]),
        4.into(),
        1.into(),
    ]);
    assert_eq!(eval(&mut session().await, code).await, expected);
}

#[tokio::test]
async fn modules_and_files_of_theirs_that_were_not_imported_are_there_too() {
    let code = "
import importlib.metadata, importlib.resources, sys
late = 'pydantic.color' in sys.modules
import pydantic.color
[late, str(pydantic.color.Color('red')), importlib.metadata.version('msgspec') == __import__('msgspec').__version__]";
    let expected = Value::List(vec![false.into(), "red".into(), true.into()]);
    assert_eq!(eval(&mut session().await, code).await, expected);
}

#[tokio::test]
async fn other_packages_can_be_loaded_beside_them() {
    let permissions = Permissions::none().allow_package("jiter").unwrap();
    let sandbox = Sandbox::builder(&PRELOADED.engine).permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    // Has native code, for which CPython must be linked after all.
    let code = "
import jiter, ctypes, pydantic
ctypes.pythonapi.PyLong_FromLong.restype = ctypes.py_object
class Point(pydantic.BaseModel):
    x: int
[jiter.from_json(b'[1]'), ctypes.pythonapi.PyLong_FromLong(42), Point(x='1').x]";
    let expected = Value::List(vec![Value::List(vec![1.into()]), 42.into(), 1.into()]);
    assert_eq!(eval(&mut session, code).await, expected);
    // Another version of a preloaded package is not available.
    let error = session.load_packages(["msgspec<0.1"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Packages, "{error}");
}

#[tokio::test]
async fn sessions_share_no_state_of_theirs_and_no_random_numbers() {
    let code = "
import msgspec, random
found = hasattr(msgspec, 'mark')
msgspec.mark = True
[found, random.random()]";
    let mut seen = Vec::new();
    for _ in 0..4 {
        let Value::List(found) = eval(&mut session().await, code).await else {
            panic!("the code makes a list");
        };
        assert_eq!(found[0], false.into());
        assert!(!seen.contains(&found[1]), "{found:?}");
        seen.push(found[1].clone());
    }
}

#[tokio::test]
async fn the_image_is_kept_and_used_again() {
    let path = PRELOADED.engine.image_path().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("preloaded-"), "{name}");
    let made = fs::metadata(path).unwrap().ino();
    let again = engine(PRELOADED.images.path());
    assert_eq!(again.image_path().unwrap(), path);
    assert_eq!(fs::metadata(path).unwrap().ino(), made);
    // A damaged image is refused, and made again once it is removed.
    let copy = Scratch::new("preload-damaged");
    let damaged = copy.path().join(name);
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let error = builder(copy.path()).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Assets, "{error}");
    assert!(error.to_string().contains("once it is removed"), "{error}");
    // One without packages has an image of its own.
    let plain = crate::util::engine_builder().images(PRELOADED.images.path()).build().unwrap();
    assert_ne!(plain.image_path().unwrap(), path);
    assert!(path.exists());
}

#[test]
fn what_is_no_package_or_cannot_be_imported_is_an_error() {
    assert_eq!(Engine::builder().preload("../x").unwrap_err().kind(), ErrorKind::Config);
    let images = Scratch::new("preload-wrong");
    let build = |package: &str| {
        let builder = crate::util::engine_builder().images(images.path()).preload(package).unwrap();
        builder.packages_from(&Permissions::none().offline_packages()).build().unwrap_err()
    };
    let error = build("no-such-package-as-this");
    assert_eq!(error.kind(), ErrorKind::Packages, "{error}");
}

/// Makes an engine with a package of one module, whose source is `module`.
fn engine_with(test: &str, module: &str) -> (Scratch, Result<Engine, isolet::Error>) {
    let work = Scratch::new(test);
    wheel(work.path(), "greeting", "1.5", module);
    let permissions = Permissions::none()
        .wheels(work.path())
        .package_cache(work.path().join("cache"))
        .offline_packages();
    let images = work.path().join("images");
    let builder = crate::util::engine_builder().images(images).packages_from(&permissions);
    let engine = builder.preload("greeting").unwrap().build();
    (work, engine)
}

#[test]
fn what_fails_when_it_is_imported_is_told() {
    let (_assets, engine) = engine_with("preload-raises", "raise LookupError('not today')");
    let error = engine.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Start, "{error}");
    assert!(error.to_string().contains("LookupError: not today"), "{error}");
}

#[test]
fn what_an_image_cannot_hold_is_told() {
    let (_assets, engine) = engine_with("preload-unkept", "import js\nkept = js.Object.new()");
    let error = engine.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Start, "{error}");
    assert!(error.to_string().contains("serialize"), "{error}");
}

/// ctypes takes places in the table of functions, and gives some of them back, between those of
/// the libraries.
#[tokio::test]
async fn libraries_and_callbacks_of_ctypes_are_kept_together() {
    let module = "
import ctypes
calls = []
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_double)
def callback(number, factor):
    calls.append(number)
    return int(number * factor)
import msgspec
dropped = ctypes.CFUNCTYPE(None)(print)
del dropped
import jiter, pydantic
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: 0)
";
    let work = Scratch::new("preload-ctypes");
    wheel(work.path(), "a_first", "1", module);
    let sources = Permissions::none().wheels(work.path());
    let builder = crate::util::engine_builder().images(work.path()).packages_from(&sources);
    let packages = ["a_first", "msgspec", "jiter", "pydantic"];
    let builder = packages.iter().fold(builder, |builder, one| builder.preload(one).unwrap());
    let sandbox = Sandbox::builder(&builder.build().unwrap()).build().unwrap();
    for _ in 0..3 {
        let mut session = sandbox.session().await.unwrap();
        let code = "
import a_first, ctypes, gc, jiter, msgspec
gc.collect()
results = [a_first.callback(4, 2.5), a_first.calls]
results += [msgspec.json.decode(b'[1]'), jiter.from_json(b'[2]')]
results.append(ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)())
address = ctypes.cast(a_first.callback, ctypes.c_void_p).value
results.append(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_double)(address)(6, 0.5))
results";
        let expected = "[10, [4, 6], [1], [2], 7, 3]";
        assert_eq!(eval(&mut session, code).await.to_string(), expected);
    }
}

#[tokio::test]
async fn a_module_of_a_package_is_preloaded_by_its_dotted_name() {
    let images = Scratch::new("preload-module");
    let builder = crate::util::engine_builder().images(images.path());
    let builder = builder.preload("pydantic").unwrap().preload("pydantic.color").unwrap();
    let sandbox = Sandbox::builder(&builder.build().unwrap()).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "import sys; 'pydantic.color' in sys.modules";
    assert_eq!(eval(&mut session, code).await, true.into());
}

#[tokio::test]
async fn an_image_can_be_larger_than_the_interpreter_is_at_first() {
    let module = "rows = [bytes([n % 256]) * 1_000_000 for n in range(100)]";
    let (_assets, engine) = engine_with("preload-large", module);
    let engine = engine.unwrap();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    for _ in 0..2 {
        let mut session = sandbox.session().await.unwrap();
        let code = "import greeting; sum(len(row) for row in greeting.rows), greeting.rows[99][-1]";
        assert_eq!(eval(&mut session, code).await.to_string(), "[100000000, 99]");
    }
    // The image then does not fit into less memory.
    let limits = Limits::default().max_memory_bytes(64 << 20);
    let small = Sandbox::builder(&engine).limits(limits).build().unwrap();
    let error = small.session().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Start, "{error}");
    assert!(error.to_string().contains("67108864"), "{error}");
}

#[tokio::test]
async fn what_they_made_does_not_keep_garbage_from_being_collected() {
    cycles_do_not_pile_up(session().await).await;
}

#[tokio::test]
async fn no_session_counts_references_to_objects_of_preloaded_packages() {
    objects_of_the_image_are_immortal(session().await, "pydantic.main msgspec").await;
}
