//! Tests of images whose packages are trusted no further than guests: those that `--with` makes by
//! itself, and those of `EngineBuilder::confine_preloaded`.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use isolet_test_support::{Ran, Scratch, command, ended, wheel};

/// Long enough that only a hang reaches it.
const HANG: Duration = Duration::from_mins(2);

/// The command, with packages of one module each and a cache of its own.
struct Machine(Scratch);

impl Machine {
    fn new(test: &str) -> Self {
        Self(Scratch::new(test))
    }

    fn package(self, name: &str, module: &str) -> Self {
        wheel(self.0.path(), name, "1", module);
        self
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let wheels = self.0.path().to_str().unwrap();
        let mut command =
            command([&["run", "--quiet", "--offline", "--wheels", wheels], args].concat());
        command.env("XDG_CACHE_HOME", self.0.path());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Returns the names of the files about images with this extension.
    fn images(&self, extension: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.path().join("isolet/images")).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(extension)).collect()
    }
}

#[test]
fn a_start_with_packages_is_of_an_image_unless_they_could_tell() {
    let machine = Machine::new("guest-image").package("telling", "SAW = 1\n");
    let code = "import sys; print('telling' in sys.modules); import telling; print(telling.SAW)";
    let with = ["--with", "telling", "-c", code];
    let audit = machine.0.path().join("audit");
    for (differently, imported) in [
        (&[][..], "True"),
        (&[], "True"),
        (&["--no-image"], "False"),
        (&["--env", "A=1"], "False"),
        (&["--allow-env", "PATH"], "False"),
        (&["--memory", "256MiB"], "False"),
        (&["--audit", audit.to_str().unwrap()], "False"),
    ] {
        let ran = machine.run(&[differently, &with].concat());
        let expected = (format!("{imported}\n1\n"), "");
        assert_eq!((ran.stdout, ran.stderr.as_str()), expected, "{differently:?}");
    }
    assert_eq!(machine.images(".bin").len(), 1);
    // Another version of the package has another image.
    fs::remove_file(machine.0.path().join("telling-1-py3-none-any.whl")).unwrap();
    wheel(machine.0.path(), "telling", "2", "SAW = 2\n");
    assert_eq!(machine.run(&with).stdout, "True\n2\n");
    assert_eq!(machine.images(".bin").len(), 2);
}

/// K27
#[test]
fn an_import_that_does_not_end_takes_no_longer_than_four_times_what_code_may() {
    let machine = Machine::new("guest-image-endless").package("loopy", "while True: pass\n");
    for (option, said) in [("--with", "note: loopy"), ("--preload", "warning: loopy")] {
        let ran = machine.run(&[
            "--timeout",
            "1s",
            option,
            "loopy",
            "-c",
            "print(1, flush=True)\nimport loopy",
        ]);
        assert_eq!(ran.stdout, "1\n", "{}", ran.stderr);
        // Once for the image, four times as long, and once for the code.
        let lines: Vec<_> = ran.stderr.lines().filter(|line| line.contains("--timeout")).collect();
        assert_eq!(lines.len(), 2, "{}", ran.stderr);
        assert!(lines[0].contains(said) && lines[0].contains("the limit is 4 s"), "{lines:?}");
        assert!(lines[1].contains("error:"), "{lines:?}");
    }
    assert_eq!(machine.images("").len(), 0, "{:?}", machine.images(""));
}

#[test]
fn what_is_printed_or_raised_by_an_import_is_seen_each_time() {
    let machine = Machine::new("guest-image-refused")
        .package("printing", "print('hello')\n")
        .package("raising", "raise LookupError('not today')\n");
    for _ in 0..2 {
        let ran = machine.run(&["--with", "printing", "-c", "import printing"]);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hello\n", ""), "{ran:?}");
        let ran = machine.run(&["--with", "raising", "-c", "print(1); import raising"]);
        assert_eq!((ran.stdout.as_str(), ran.code), ("1\n", Some(1)), "{ran:?}");
        assert!(ran.stderr.contains("LookupError: not today"), "{ran:?}");
        assert_eq!(machine.images(".refused").len(), 2);
    }
    assert_eq!(machine.images(".bin").len(), 0);
}

#[test]
fn a_damaged_image_is_made_again() {
    let machine = Machine::new("guest-image-damaged").package("telling", "SAW = 1\n");
    let with = ["--with", "telling", "-c", "import sys; print('telling' in sys.modules)"];
    assert_eq!(machine.run(&with).stdout, "True\n");
    let images = machine.images(".bin");
    let [image] = &images[..] else { panic!("{images:?}") };
    let image = machine.0.path().join("isolet/images").join(image);
    let mut damaged = fs::read(&image).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&image, &damaged).unwrap();
    let ran = machine.run(&with);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("True\n", ""), "{ran:?}");
    assert_ne!(fs::read(&image).unwrap(), damaged);
}

/// Returns the processes that this one has started.
#[cfg(target_os = "linux")]
fn children(parent: &Child) -> Vec<u32> {
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let mut all = fs::read_to_string(children).unwrap_or_default();
    // Others are of the thread that starts workers.
    for task in fs::read_dir(format!("/proc/{}/task", parent.id())).into_iter().flatten() {
        let path = task.unwrap().path().join("children");
        all.push_str(&fs::read_to_string(path).unwrap_or_default());
    }
    all.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// The package never returns from its import: whatever the worker has not given up by then, it
/// would never give up.
#[cfg(target_os = "linux")]
#[test]
fn a_worker_is_locked_down_before_it_imports_a_package() {
    let machine = Machine::new("guest-image-lockdown").package("endless", "while True: pass\n");
    let with = ["--with", "endless", "-c", "print('ran')"];
    let mut run = machine.command(&with).stdout(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    let worker = loop {
        assert_eq!(run.try_wait().unwrap(), None, "the command has ended");
        assert!(start.elapsed() < HANG, "no worker is locked down");
        let locked = |id: &u32| {
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let has = |line: &str| status.lines().any(|one| one == line);
            has("Seccomp:\t2") && has("NoNewPrivs:\t1") && has("CapEff:\t0000000000000000")
        };
        if let Some(worker) = children(&run).into_iter().find(locked) {
            break worker;
        }
        std::thread::yield_now();
    };
    let pid = rustix::process::Pid::from_raw(worker.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // The package is loaded instead, and the program does not import it.
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut run.stdout.take().unwrap(), &mut printed).unwrap();
    assert_eq!((printed.as_str(), ended(run).code()), ("ran\n", Some(0)));
    assert_eq!(machine.images(".bin").len(), 0);
}
