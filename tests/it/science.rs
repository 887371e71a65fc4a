//! Real work with numpy, pandas and the packages around them, by `cargo xtask test --science`,
//! which gets Pyodide's builds of them.

use std::path::PathBuf;
use std::time::Duration;

use isolet::{
    Cell, Display, Engine, Isolation, Limits, MimeData, Permissions, Sandbox, Session, Value,
};
use serde_json::json;

use crate::util::{self, Ran, Scratch, command, engine_builder, eval, exec};

const SALES: &str = "\
day,city,sold,price
2026-01-05,Oslo,12,3.50
2026-01-05,Rome,n/a,4.00
2026-01-06,Oslo,7,3.50
2026-01-06,Rome,20,4.10
2026-01-07,Oslo,,3.60
2026-01-07,Rome,9,4.10
";

/// A program as a model writes it.
const REPORT: &str = include_str!("../science/report.py");

/// A directory below `target/science`, where `cargo xtask test --science` puts what it gets.
fn directory(name: &str) -> PathBuf {
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("science").join(name)
}

/// Returns permissions for packages, from the wheels and from the package index.
fn permissions(packages: &[&str]) -> Permissions {
    let wheels = directory("wheels");
    assert!(wheels.exists(), "run `cargo xtask test --science`, which gets the wheels");
    let sources = Permissions::none().wheels(wheels).wheels(directory("own"));
    let sources = sources.package_cache(directory("cache"));
    packages.iter().fold(sources, |sources, package| sources.allow_package(package).unwrap())
}

async fn session(engine: &Engine, packages: &[&str]) -> Session {
    let limits = Limits::default().max_run_time(Duration::from_mins(4));
    let sandbox = Sandbox::builder(engine).permissions(permissions(packages)).limits(limits);
    sandbox.build().unwrap().session().await.unwrap()
}

async fn works(code: &str, packages: &[&str], expected: impl Into<Value>) {
    let engine = engine_builder().build().unwrap();
    let mut session = session(&engine, packages).await;
    assert_eq!(eval(&mut session, Cell::new(code).chart_pictures()).await, expected.into());
}

macro_rules! work {
    ($($name:ident: $packages:expr => $expected:expr;)*) => {
        $(
            #[tokio::test]
            #[ignore = "needs the wheels of `cargo xtask test --science`"]
            async fn $name() {
                let code = include_str!(concat!("../science/", stringify!($name), ".py"));
                works(code, &$packages, $expected).await;
            }
        )*
    };
}

work! {
    numpy: ["numpy"] => vec![
        Value::from("2"), 1.0.into(), vec![Value::from(0), 1.into(), 2.into()].into(),
    ];
    pandas: ["pandas", "openpyxl", "tzdata"] => vec![
        Value::from("Oslo"), "Oslo".into(), "Rome".into(), "Rome".into(),
    ];
    matplotlib: ["matplotlib"] => "drawn";
    plotly_charts: ["isolet-charts", "matplotlib", "pandas", "plotly"] => "drawn";
    vega_charts: ["isolet-charts", "matplotlib", "pandas", "altair", "jsonschema<4.18"] => "drawn";
    fonts: ["matplotlib", "isolet-fonts"] => vec![Value::from(true), true.into()];
    scipy: ["scipy"] => "solved";
    sklearn: ["scikit-learn"] => "fitted";
    pillow: ["pillow"] => vec![Value::from(255), 215.into(), 0.into()];
    documents: ["lxml", "beautifulsoup4", "python-docx", "python-pptx", "openpyxl", "xlsxwriter"]
        => "written";
    words: ["regex", "sympy", "networkx", "scipy"] => "x*cos(x) + sin(x)";
    seaborn: ["seaborn"] => "plotted";
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn tables_and_arrays_cross_as_plain_data() {
    let engine = engine_builder().build().unwrap();
    let mut session = session(&engine, &["pandas", "tzdata"]).await;
    let found = eval(&mut session, include_str!("../science/values.py")).await;
    let expected = [
        "{'index': ['a', 'b'], 'n': [1, 2], 'x': [0.5, nan], 'when': ['2026-11-22T10:00:00', None]}",
        "{'n': [1, None]}",
        "{'n': [1], 'n.2': [2]}",
        "['x', None]",
        "[[1, 2], [3, 4]]",
        "['2026-11-22T00:00:00.000000000', None]",
        "1.5",
        "120.0",
        "'2026-11-22T00:00:00+01:00'",
        "[{'a': 0.5}]",
        "[1, 2]",
        "'text'",
        "'2026-11'",
        "True",
    ];
    let Value::List(found) = found else { panic!("{found}") };
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn numbers_are_those_of_a_desktop_and_indices_those_of_the_packages() {
    let engine = engine_builder().build().unwrap();
    let mut session = session(&engine, &["pandas", "scipy", "scikit-learn", "tzdata"]).await;
    let expected = include_str!("../science/integers/expected.txt");
    assert!(expected.lines().count() > 240);
    session.files().put("/data/expected.txt", expected).await.unwrap();
    exec(&mut session, include_str!("../science/integers/check.py")).await;
    let code = "list(differences(open('/data/expected.txt')))";
    assert_eq!(eval(&mut session, code).await, Value::List(Vec::new()));
    exec(&mut session, include_str!("../science/integers/indices.py")).await;
}

/// Returns a wheel with another digest, whose files are the same: one that another system made.
fn made_elsewhere(mut wheel: Vec<u8>) -> Vec<u8> {
    const MADE_BY: usize = 5;
    let end = wheel.len() - 22;
    let directory: [u8; 4] = wheel[end + 16..end + 20].try_into().unwrap();
    let entry = u32::from_le_bytes(directory) as usize;
    assert_eq!(wheel[entry..entry + 4], *b"PK\x01\x02");
    wheel[entry + MADE_BY] = if wheel[entry + MADE_BY] == 3 { 0 } else { 3 };
    wheel
}

/// Returns a numpy that lacks a file which isolet changes: it is loaded as it is.
fn without_a_changed_file(mut wheel: Vec<u8>) -> Vec<u8> {
    const FILE: &[u8] = b"numpy/random/mtrand.c";
    let places: Vec<usize> = (0..wheel.len() - FILE.len())
        .filter(|&at| wheel[at] == FILE[0] && wheel[at..].starts_with(FILE))
        .collect();
    assert_eq!(places.len(), 2);
    for at in places {
        wheel[at + FILE.len() - 3] = b'x';
    }
    wheel
}

/// What a sum prints and says on stderr with this numpy, at first and from an image of it.
fn sums(name: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> [Ran; 2] {
    let scratch = Scratch::new(name);
    let name = "numpy-2.4.3-cp314-cp314-pyemscripten_2026_0_wasm32.whl";
    let wheel = change(std::fs::read(directory("wheels").join(name)).unwrap());
    std::fs::write(scratch.path().join(name), wheel).unwrap();
    let script = scratch.file("sum.py", "import numpy as np\nprint(np.arange(1, 100_001).sum())");
    let images = scratch.path().join("home");
    [(); 2].map(|()| {
        let mut run = command(["run", "--with", "numpy", "--wheels"]);
        run.arg(scratch.path()).env("XDG_CACHE_HOME", &images).arg(&script);
        Ran::from(run.output().unwrap())
    })
}

#[test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
fn a_numpy_of_an_unknown_build_is_changed_where_it_has_all_places() {
    for ran in sums("science-numpy-elsewhere", made_elsewhere) {
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("5000050000\n", ""));
    }
}

#[test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
fn a_numpy_that_is_not_changed_is_told_once() {
    for ran in sums("science-numpy-unchanged", without_a_changed_file) {
        assert_eq!(ran.stdout, "705082704\n", "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("warning: numpy 2.4.3 has").count(), 1, "{}", ran.stderr);
    }
}

/// Returns the first bytes of a display's data.
fn begin(data: Option<&MimeData>) -> Vec<u8> {
    data.map(|data| data.as_bytes().iter().copied().take(4).collect()).unwrap_or_default()
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn a_report_gives_a_picture_a_table_and_a_file() {
    let engine = engine_builder().build().unwrap();
    let mut session = session(&engine, &["pandas", "matplotlib", "openpyxl"]).await;
    session.files().put("/data/sales.csv", SALES).await.unwrap();
    let execution = session.run(REPORT).await.unwrap();
    let [picture, table] = execution.displays() else { panic!("{execution:?}") };
    assert_eq!(begin(picture.get("image/png")), b"\x89PNG");
    let chart = picture.get("application/vnd.isolet.chart.v1+json").unwrap().as_str().unwrap();
    let chart: serde_json::Value = serde_json::from_str(chart).unwrap();
    assert_eq!((&chart["type"], &chart["title"]), (&"bar".into(), &"Revenue".into()));
    assert_eq!(chart["elements"][0]["label"], "Oslo");
    assert_eq!(chart["elements"][1]["value"], 118.9);
    assert!(
        table.is_result() && table.get("text/html").unwrap().as_str().unwrap().contains("Rome")
    );
    assert_eq!(picture.stdout_bytes_before(), "cleaned 2 rows\n".len() as u64);
    let book = session.files().get("/home/user/report.xlsx").await.unwrap().unwrap();
    assert_eq!(book.get(..2), Some(&b"PK"[..]));
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn what_warms_an_image_up_works_to_its_end() {
    let code = include_str!("../../js/py/warm_up_packages.py");
    // There, what fails is left out.
    let strict = code.replace("contextlib.suppress(Exception)", "contextlib.nullcontext()");
    assert_ne!(strict, code);
    let engine = engine_builder().build().unwrap();
    let mut session = session(&engine, &["numpy", "pandas", "matplotlib"]).await;
    exec(&mut session, "import numpy, pandas, matplotlib.pyplot").await;
    exec(&mut session, strict.as_str()).await;
    let used = "[use.__name__ for name in USES if name in sys.modules for use in USES[name]]";
    assert_eq!(eval(&mut session, format!("len({used})")).await, Value::Int(8));
}

#[test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
fn the_command_gives_the_same() {
    let scratch = Scratch::new("science-report");
    let [data, out] = ["data", "out"].map(|name| scratch.path().join(name));
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("sales.csv"), SALES).unwrap();
    std::fs::create_dir(&out).unwrap();
    let shown = scratch.path().join("shown");
    let code = REPORT.replace("'report.xlsx'", "'/out/report.xlsx'");
    assert_ne!(code, REPORT);
    let script = scratch.file("report.py", code);
    let run = |more: &[&str]| {
        let mut run = command(["run", "--with", "pandas,matplotlib,openpyxl", "--timeout", "4m"]);
        run.arg("--wheels").arg(directory("wheels")).env("XDG_CACHE_HOME", directory("home"));
        run.arg("--mount").arg(format!("{}:/data", data.display()));
        run.arg("--mount").arg(format!("{}:/out:rw", out.display()));
        Ran::from(run.args(more).arg(&script).output().unwrap())
    };
    let ran = run(&["--show-dir", shown.to_str().unwrap()]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("cleaned 2 rows\n", Some(0)), "{}", ran.stderr);
    let read = |name: &str| std::fs::read(shown.join(name)).unwrap();
    assert_eq!(read("001.png").get(..4), Some(&b"\x89PNG"[..]));
    assert!(String::from_utf8(read("002.html")).unwrap().contains("Rome"));
    assert!(out.join("report.xlsx").exists());
    let ran = run(&["--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(report["displays"][0]["image/png"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    assert_eq!(report["displays"][0]["application/vnd.isolet.chart.v1+json"]["type"], "bar");
}

/// `script` makes the terminal, and `ISOLET_PICTURES` names its protocol.
#[test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
fn charts_for_a_browser_are_pictures_for_a_terminal_and_a_directory_and_data_for_a_client() {
    let scratch = Scratch::new("science-charts");
    let shown = scratch.path().join("shown");
    let code = "import altair as alt, pandas as pd, plotly.express as px\n\
                table = pd.DataFrame({'city': ['Oslo', 'Rome'], 'sold': [3, 5]})\n\
                px.bar(table, x='city', y='sold').show()\n\
                display(alt.Chart(table).mark_line().encode(x='city', y='sold'))";
    let with = "isolet-charts,matplotlib,pandas,plotly,altair,jsonschema<4.18";
    let [wheels, own] = ["wheels", "own"].map(|name| directory(name).display().to_string());
    let options = ["run", "--timeout", "4m", "--with", with, "--wheels", &wheels, "--wheels", &own];
    let run = |more: &[&str]| {
        let mut run = command([&options, more, &["-c", code]].concat());
        Ran::from(run.env("XDG_CACHE_HOME", directory("home")).output().unwrap())
    };
    let ran = run(&["--show-dir", shown.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for number in ["001", "002"] {
        let read = |end: &str| std::fs::read(shown.join(format!("{number}.{end}"))).unwrap();
        assert_eq!(read("png").get(..4), Some(&b"\x89PNG"[..]));
        assert!(String::from_utf8(read("chart.json")).unwrap().contains("Rome"));
    }
    // Nobody sees them here, so none is drawn.
    let ran = run(&["--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    for (number, format, kind) in [(0, "vnd.plotly.v1", "bar"), (1, "vnd.vegalite.v6", "line")] {
        let display = &report["displays"][number];
        assert!(display[format!("application/{format}+json")].is_object(), "{display}");
        assert_eq!(display["application/vnd.isolet.chart.v1+json"]["type"], kind);
        assert_eq!(display["image/png"], serde_json::Value::Null);
    }
    let script = scratch.file("charts.py", code);
    let inner = command(options);
    let words = inner.get_args().map(|word| format!("'{}'", word.display()));
    let line: Vec<_> =
        [inner.get_program().display().to_string()].into_iter().chain(words).collect();
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qec", &format!("{} {}", line.join(" "), script), "/dev/null"]);
    terminal.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    terminal.env("XDG_CACHE_HOME", directory("home")).env("ISOLET_PICTURES", "kitty");
    let output = terminal.stdin(std::process::Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("\x1b_Ga=T").count(), 2, "{text:.2000}");
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn preloaded_they_are_there_at_once_with_random_numbers_of_their_own() {
    let sources = permissions(&[]);
    let images = Scratch::new("science-preload");
    let builder = engine_builder().images(images.path()).packages_from(&sources);
    let packages = ["numpy", "pandas", "matplotlib"];
    let builder = packages.iter().fold(builder, |builder, one| builder.preload(one).unwrap());
    let engine = builder.build().unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let sandbox = Sandbox::builder(&engine).build().unwrap();
        let mut session = sandbox.session().await.unwrap();
        let code = "
import ctypes, sys
loaded = [name in sys.modules for name in ('numpy', 'pandas', 'matplotlib.pyplot')]
import numpy as np, pandas as pd, matplotlib.pyplot as plt
plt.plot(np.linalg.inv([[2.0, 0], [0, 4]]))
assert ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)() == 7
assert pd.DataFrame({'a': [1, 2]}).a.sum() == 3
assert np.arange(1, 100_001).sum() == 5000050000
[loaded, np.random.random()]";
        let execution = session.run(code).await.unwrap();
        let shown: Vec<bool> = execution.displays().iter().map(Display::is_result).collect();
        assert_eq!(shown, [true, false], "the value comes before the figure: {execution:?}");
        let Some(Value::List(found)) = execution.value().cloned() else { panic!("{execution:?}") };
        assert_eq!(found[0], Value::List(vec![true.into(); 3]));
        assert!(!seen.contains(&found[1]), "{found:?}");
        seen.push(found[1].clone());
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn a_copy_of_a_session_has_its_arrays_and_they_are_apart() {
    let engine = engine_builder().build().unwrap();
    let sandbox = Sandbox::builder(&engine).permissions(permissions(&["numpy"])).forkable(3);
    let sandbox = sandbox.isolation(isolet::Isolation::Process).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    eval(&mut session, "import numpy as np; a = np.arange(10); np.random.seed(3); 0").await;
    let mut copy = session.fork().await.unwrap();
    let code = "a[3:] *= 2; [int(a.sum()), float(np.linalg.norm(a[:2])), float(np.random.rand())]";
    let changed = eval(&mut copy, code).await;
    let drawn = eval(&mut session, "float(np.random.rand())").await;
    assert_eq!(changed, Value::List(vec![87.into(), 1.0.into(), drawn]));
    assert_eq!(eval(&mut session, "int(a.sum())").await, 45.into());
    // A module that the session has not imported is compiled by the copy.
    let code = "import numpy.fft; float(abs(numpy.fft.fft([1, 1, 1, 1])[0]))";
    assert_eq!(eval(&mut copy.fork().await.unwrap(), code).await, 4.0.into());
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn options_of_numpy_live_from_cell_to_cell_in_copies_and_in_saved_sessions() {
    let dir = crate::util::Scratch::new("numpy-options");
    let file = dir.path().join("session");
    let engine = engine_builder().build().unwrap();
    let sandbox = Sandbox::builder(&engine).permissions(permissions(&["numpy"])).forkable(3);
    let sandbox = sandbox.isolation(isolet::Isolation::Process).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "import asyncio, numpy as np\nthird = np.array([1 / 3])\n\
                np.set_printoptions(precision=3); _ = np.seterr(over='raise'); 0";
    eval(&mut session, code).await;
    // What a cell sets after it has waited, and what a task sees that outlives its cell.
    let code = "await asyncio.sleep(0)\nnp.set_printoptions(precision=5)\n\
                async def late():\n    await asyncio.sleep(0.01)\n    \
                return [str(third), np.geterr()['over']]\n\
                task = asyncio.create_task(late())\n\
                with np.printoptions(precision=1), np.errstate(over='ignore'): str(third)\n\
                str(third)";
    assert_eq!(eval(&mut session, code).await, "[0.33333]".into());
    let code = "np.set_printoptions(precision=4)\n[await task, str(third), np.geterr()['over']]";
    let seen = Value::List(vec!["[0.33333]".into(), "raise".into()]);
    let expected = Value::List(vec![seen, "[0.3333]".into(), "raise".into()]);
    assert_eq!(eval(&mut session, code).await, expected);
    eval(&mut session, "del task, late; 0").await;
    let copy = session.fork().await.unwrap();
    session.save(&file).await.unwrap();
    let restored = sandbox.restore(&file).await.unwrap();
    for mut session in [session, copy, restored] {
        let execution = exec(&mut session, "third").await;
        assert_eq!(execution.repr(), Some("array([0.3333])"));
        let code = "try:\n    np.int64(2**62) * np.int64(4)\n\
                    except FloatingPointError as error: found = str(error)\nfound";
        assert!(eval(&mut session, code).await.to_string().contains("overflow"));
    }
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn what_has_no_inverse_raises() {
    let code = "
import numpy as np
zero, flat = np.zeros((2, 2)), np.array([[1.0, 2], [2, 4]])
missing = np.array([[np.nan, 1], [1, 1]])
found = []
for code in (
    'np.linalg.inv(zero)', 'np.linalg.inv(np.stack([np.eye(2), zero]))',
    'np.linalg.solve(flat, [1, 2])', 'np.linalg.cholesky(-np.eye(2))',
    'np.linalg.matrix_power(flat, -1)', 'np.matrix(zero).I', 'np.linalg.inv(zero.astype(complex))',
):
    try:
        eval(code)
    except np.linalg.LinAlgError as error:
        found.append(str(error))
fine = [
    np.linalg.lstsq(flat, np.array([1.0, 2]))[0], np.linalg.pinv(flat), np.linalg.cond(zero),
    np.linalg.det(zero), np.linalg.inv(missing), np.linalg.svd(zero)[1], np.linalg.inv(np.eye(0)),
]
[*found, len(fine)]
";
    let singular = Value::from("Singular matrix");
    let found = vec![
        singular.clone(),
        singular.clone(),
        singular.clone(),
        "Matrix is not positive definite".into(),
        singular.clone(),
        singular.clone(),
        singular,
        7.into(),
    ];
    works(code, &["numpy"], Value::List(found)).await;
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn a_saved_session_has_its_packages_arrays_and_tables_when_it_is_restored() {
    let dir = crate::util::Scratch::new("saved-science");
    let file = dir.path().join("session");
    let engine = engine_builder().build().unwrap();
    let sandbox = Sandbox::builder(&engine).permissions(permissions(&["numpy", "pandas"]));
    let sandbox = sandbox.build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "
import numpy as np, pandas as pd
a = np.arange(12.0).reshape(3, 4); np.random.seed(3); np.random.rand()
t = pd.DataFrame({'g': ['x', 'y', 'x'], 'n': [1, 2, 3]})
0
";
    eval(&mut session, code).await;
    let seen = "[float((a @ a.T).trace()), float(np.random.rand()), \
                t.groupby('g').n.sum().to_dict(), t.merge(t, on='g').shape[0]]";
    session.save(&file).await.unwrap();
    let expected = eval(&mut session, seen).await;
    let mut restored = sandbox.restore(&file).await.unwrap();
    assert_eq!(eval(&mut restored, seen).await, expected);
    // Modules that it had not imported, from another saved state of it.
    restored.save(&file).await.unwrap();
    let mut restored = sandbox.restore(&file).await.unwrap();
    let code = "import numpy.fft, pandas.io.json; float(abs(numpy.fft.fft([1, 1, 1, 1])[0]))";
    assert_eq!(eval(&mut restored, code).await, 4.0.into());

    let none = Sandbox::builder(&engine).build().unwrap().restore(&file).await.unwrap_err();
    assert_eq!(none.kind(), isolet::ErrorKind::Packages);
    assert!(none.to_string().contains("package numpy"), "{none}");
}

#[tokio::test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
async fn tables_and_axes_are_told_as_e2b_has_them() {
    let engine = engine_builder().build().unwrap();
    let mut session = session(&engine, &["pandas", "matplotlib"]).await;
    let mut shown = async |code: &str, format: &str| -> serde_json::Value {
        let ran = session.run(Cell::new(code).table_data()).await.unwrap();
        let [display] = ran.displays() else { panic!("{ran:?}") };
        serde_json::from_str(display.get(format).unwrap().as_str().unwrap()).unwrap()
    };
    let table = "
import datetime, numpy as np, pandas as pd
pd.DataFrame({
    'n': pd.array([1, None], dtype='Int64'), 'x': [np.nan, 0.5], 's': ['a', None],
    't': pd.to_datetime(['2026-01-02', None]), 'c': pd.Categorical(['u', 'v']),
    7: [datetime.date(2026, 1, 2), pd.Timedelta(1, 's')],
})";
    assert_eq!(
        shown(table, "application/vnd.isolet.table.v1+json").await,
        json!({
            "n": [1, null], "x": [null, 0.5], "s": ["a", null], "t": ["2026-01-02T00:00:00", null],
            "c": ["u", "v"], "7": ["2026-01-02", "0 days 00:00:01"],
        })
    );
    let format = "application/vnd.isolet.chart.v1+json";
    let bars = "import matplotlib.pyplot as plt; plt.barh(['a'], [1]); plt.show()";
    assert_eq!(shown(bars, format).await["orientation"], "horizontal");
    let boxes =
        "plt.boxplot([[1, 2, 3, 4, 5], [2, 3, 4, 5, 20]], tick_labels=['x', 'y'])\nplt.show()";
    let lying = boxes.replace("])\n", "], orientation='horizontal')\n");
    let (boxes, lying) = (shown(boxes, format).await, shown(&lying, format).await);
    assert_eq!((&boxes["type"], &boxes["orientation"]), (&"box_and_whisker".into(), &json!(null)));
    assert_eq!(lying["orientation"], "horizontal");
    assert_eq!(lying["elements"], boxes["elements"]);
    assert_eq!(boxes["elements"][1]["outliers"], json!([20]));
    let lines = "plt.plot([0, 1, 2, 3, 4], [1, 3, 2, 5, 4])\nplt.axhline(3)\nplt.show()";
    assert_eq!(shown(lines, format).await["type"], "line");
    let dates =
        "plt.plot([datetime.date(2026, 1, 2), datetime.date(2026, 1, 4)], [1, 2]); plt.show()";
    let dates = shown(dates, format).await;
    assert_eq!((&dates["x_scale"], &dates["y_scale"]), (&"datetime".into(), &"linear".into()));
    assert_eq!(dates["x_ticks"][0], "2026-01-02T00:00:00+00:00");
}

#[test]
#[ignore = "needs the wheels of `cargo xtask test --science`"]
fn scripts_of_skills_with_packages_do_what_people_s_do() {
    // Once is enough: the scripts take half a minute.
    if util::isolation() == Isolation::Thread {
        return;
    }
    let cases = isolet_test_support::skills::cases();
    let cases: Vec<_> = cases.into_iter().filter(|case| !case.packages.is_empty()).collect();
    assert!(cases.len() >= 10);
    let mut options = vec!["--no-image".to_owned()];
    for name in ["wheels", "own"] {
        options.extend(["--wheels".to_owned(), directory(name).display().to_string()]);
    }
    let with = |case: &isolet_test_support::skills::SkillCase| {
        let packages = ["--with".to_owned(), case.packages.join(",")];
        case.run(&[&options[..], &packages].concat())
    };
    let wrong: Vec<_> = cases.iter().filter_map(|case| with(case).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
