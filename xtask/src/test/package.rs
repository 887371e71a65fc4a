//! `cargo xtask test --python`: installs the wheel of the Python package into environments of its
//! own, and runs the package's tests and pyright with it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use super::science;
use crate::{junit, process, python, uv, wheel};

/// An environment: the name of its list in `python/tests/requirements`, and the arguments of each
/// run of pytest in it.
type Environment = (&'static str, &'static [&'static [&'static str]]);

/// The environment with pyright, and with most frameworks.
const MAIN: Environment = (
    "frameworks",
    &[
        // Each half has a `conftest.py` of its own.
        &[
            "tests",
            "--ignore",
            "tests/adapters",
            "--ignore",
            "tests/deploy",
            "--ignore",
            "tests/kernel",
        ],
        &[
            "tests/adapters",
            "--ignore",
            "tests/adapters/test_crewai.py",
            "--ignore",
            "tests/adapters/test_monty.py",
            "--ignore",
            "tests/adapters/test_node_e2b_names.py",
            "--ignore",
            "tests/adapters/test_node_openenv.py",
            "--ignore",
            "tests/adapters/test_node_opensandbox.py",
            "--ignore",
            "tests/adapters/test_node_trl.py",
            "--ignore",
            "tests/adapters/test_openenv.py",
        ],
    ],
);

/// The environments of frameworks whose newest versions do not go with the newest ones of others.
const OTHERS: [Environment; 7] = [
    ("crewai", &[&["tests/adapters/test_crewai.py"]]),
    // Proxies, and what checks the configurations of nodes.
    ("deploy", &[&["tests/deploy", "--ignore", "tests/deploy/test_ray.py"]]),
    // The kernel of Jupyter, by Jupyter's programs.
    ("kernel", &[&["tests/kernel"]]),
    ("monty", &[&["tests/adapters/test_monty.py"]]),
    // With an older `mcp`, as most clients have it.
    (
        "openenv",
        &[
            &["tests/adapters/test_openenv.py"],
            &["tests/adapters/test_node_openenv.py"],
            &["tests/adapters/test_mcp_server.py"],
        ],
    ),
    ("ray", &[&["tests/deploy/test_ray.py"]]),
    (
        "sandboxes",
        &[&["tests/adapters/test_node_opensandbox.py", "tests/adapters/test_node_e2b_names.py"]],
    ),
];

/// An environment that has 6 GB, most of it for processors that the tests do not use.
const TRL: Environment = ("trl", &[&["tests/adapters/test_node_trl.py"]]);

/// The most seconds that a test may take. Some machines are slow.
const TEST_SECONDS: u32 = 180;

/// Runs pytest with `args` in the main environment; without `args`, all tests and pyright.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let wheel = wheel::run(wheel::Purpose::Tests)?;
    // Its pip gets the wheels of pandas and others, and the packages that they need.
    python::ensure()?;
    let wheels = science::wheels()?;
    let main = environment(MAIN.0, &wheel)?;
    if !args.is_empty() {
        return Ok(process::exit_code(process::status(pytest(&main, &wheels)?.args(args))?));
    }
    for environment in [MAIN].into_iter().chain(OTHERS) {
        let code = run_in(environment, &wheel, &wheels)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    let mut pyright = Command::new(&main);
    pyright.args(["-m", "pyright", "--pythonpath"]).arg(&main).current_dir(directory());
    Ok(process::exit_code(process::status(&mut pyright)?))
}

/// Runs the tests with TRL, which installs 6 GB.
pub(crate) fn trl() -> Result<ExitCode> {
    let wheel = wheel::run(wheel::Purpose::Tests)?;
    python::ensure()?;
    run_in(TRL, &wheel, &science::wheels()?)
}

/// Makes the environments of all tests but TRL's, and the one with DSPy, so that the tests need not
/// wait for downloads.
pub(crate) fn environments() -> Result<()> {
    python::ensure()?;
    [MAIN].iter().chain(&OTHERS).try_for_each(|(name, _)| synchronized(name).map(drop))
}

/// Runs the tests of an environment.
fn run_in((name, runs): Environment, wheel: &Path, wheels: &Path) -> Result<ExitCode> {
    let python = environment(name, wheel)?;
    for (number, run) in runs.iter().enumerate() {
        let mut pytest = pytest(&python, wheels)?;
        // The modules are spread over the processors.
        pytest.args(*run).args(["--numprocesses", "logical", "--dist", "loadfile"]);
        pytest.arg("--junit-xml").arg(junit::pytest_report(&format!("{name}-{number}"))?);
        let status = process::status(&mut pytest)?;
        if !status.success() {
            return Ok(process::exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn directory() -> PathBuf {
    process::root().join("python")
}

/// Returns a call of pytest by the Python of an environment. The tests find wheels in `wheels`.
fn pytest(python: &Path, wheels: &Path) -> Result<Command> {
    let mut pytest = Command::new(python);
    pytest.args(["-m", "pytest", "-q", "--timeout", &TEST_SECONDS.to_string()]);
    // What the wheel brings is tested, not what the machine has.
    for name in ["ISOLET_ASSETS", "ISOLET_BIN", "ISOLET_ISOLATION", "PYTHONPATH"] {
        pytest.env_remove(name);
    }
    let cache = process::target_dir()?.join("client-cache");
    // The frameworks come without bytecode: most of it would never be used.
    pytest.env("PYTHONPYCACHEPREFIX", cache.join("bytecode")).env("XDG_CACHE_HOME", cache);
    python::with_python(&mut pytest)?.env("ISOLET_TEST_WHEELS", wheels);
    pytest.current_dir(directory());
    Ok(pytest)
}

/// Returns the Python of an environment with the wheel in it.
fn environment(name: &str, wheel: &Path) -> Result<PathBuf> {
    let (home, python) = synchronized(name)?;
    uv::install(&home, wheel)?;
    Ok(python)
}

/// Returns the directory and the Python of an environment. Makes it if its list is another one by
/// now.
fn synchronized(name: &str) -> Result<(PathBuf, PathBuf)> {
    let home = process::target_dir()?.join("client").join(name);
    let (python, stamp) = (home.join("bin/python"), home.join("requirements"));
    let list = directory().join("tests/requirements").join(name).with_extension("txt");
    let wanted =
        fs::read_to_string(&list).with_context(|| format!("cannot read `{}`", list.display()))?;
    if !is_ready(&python, &stamp, &wanted) {
        eprintln!("installing `{}` with uv", list.display());
        uv::environment(&home, &list)?;
        fs::write(&stamp, wanted).with_context(|| format!("cannot write `{}`", stamp.display()))?;
    }
    Ok((home, python))
}

/// Whether the environment was made from this list, and its Python is still there.
fn is_ready(python: &Path, stamp: &Path, list: &str) -> bool {
    let starts = || Command::new(python).arg("-V").output().is_ok_and(|ran| ran.status.success());
    fs::read_to_string(stamp).is_ok_and(|stamp| stamp == list) && starts()
}
