//! Tests with a fake pip that records its calls, lies, or does nothing: the host's calls, and which
//! answers it believes.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use isolet_pyodide_assets::{Authorities, Digest, Wanted};

use super::super::PackageError;
use super::super::process;
use super::super::report::{self, Failure, Unreachable};
use super::super::store::{PackageStore, StoreOptions};
use crate::support::patience::GivenUp;

use super::{directory, lock, names, put_wheel, requirements, wheel_bytes};

/// A Python program that replaces `python3`. It writes its arguments to the file `calls`, reports
/// the wheels in `served`, and downloads them, or others with their names from `sent`.
const FAKE: &str = r#"#!/usr/bin/env python3
import hashlib, json, os, shutil, sys
here = os.path.dirname(os.path.abspath(__file__))
markers, preferred, action, *arguments = sys.argv[sys.argv.index("-c") + 2:]
with open(here + "/calls", "a") as calls:
    calls.write(json.dumps([action, *arguments, dict(os.environ)]) + "\n")
after = lambda option: arguments[arguments.index(option) + 1]
if action == "install":
    install = []
    for file in sorted(os.listdir(here + "/served")):
        digest = hashlib.sha256(open(here + "/served/" + file, "rb").read()).hexdigest()
        name, version = file.split("-")[:2]
        info = {"url": "", "archive_info": {"hashes": {"sha256": digest}}}
        install.append({"metadata": {"name": name, "version": version}, "download_info": info})
    with open(after("--report"), "w") as report:
        json.dump({"install": install, "environment": json.loads(markers)}, report)
else:
    source = here + ("/sent/" if os.path.exists(here + "/sent") else "/served/")
    for file in os.listdir(source):
        shutil.copy(source + file, after("--dest"))
"#;

fn fake(at: &Path, program: &str) -> PathBuf {
    let path = at.join("python");
    // Written by another process. If a thread of this one held the file open for writing while
    // another thread forks, the file could not be run.
    let write = "printf %s \"$1\" > \"$2\" && chmod 700 \"$2\"";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", write, "sh", program]).arg(&path);
    assert!(shell.status().unwrap().success());
    fs::create_dir_all(at.join("served")).unwrap();
    path
}

fn store(at: &Path, lock_json: &[u8]) -> PackageStore {
    store_with(at, lock_json, StoreOptions::default())
}

fn store_with(at: &Path, lock_json: &[u8], options: StoreOptions) -> PackageStore {
    let options = StoreOptions { python: Some(at.join("python")), ..options };
    PackageStore::new(at.join("cache"), lock_json, options).unwrap()
}

fn calls(at: &Path) -> Vec<Vec<serde_json::Value>> {
    let calls = fs::read_to_string(at.join("calls")).unwrap_or_default();
    calls.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_import_of_a_name_that_is_not_allowed_never_runs_pip() {
    let work = directory();
    fake(work.path(), FAKE);
    let store = store(work.path(), &lock(&[]));
    let allowed = requirements(&["requests"]);
    for module in ["reqeusts", "request", "requests2", "os", "", ".", "--index-url=x", "a b"] {
        assert_eq!(store.allowed_for_import(module, &allowed), None, "{module}");
    }
    assert!(store.allowed_for_import("requests", &allowed).is_some());
    assert_eq!(calls(work.path()), Vec::<Vec<serde_json::Value>>::new());
}

#[test]
fn offline_pip_is_not_run() {
    let work = directory();
    fake(work.path(), FAKE);
    let options = StoreOptions { offline: true, ..StoreOptions::default() };
    let store = store_with(work.path(), &lock(&[]), options);
    assert!(store.resolve(&requirements(&["requests"])).is_err());
    assert_eq!(calls(work.path()).len(), 0);
}

#[test]
fn pip_gets_only_wheels_to_choose_from_and_only_its_own_variables() {
    let work = directory();
    fake(work.path(), FAKE);
    put_wheel(&work.path().join("served"), "a", "1", "");
    let store = store(work.path(), &lock(&[]));
    let resolved = store.resolve(&requirements(&["a>=1", "b[x]"])).unwrap();
    assert_eq!(names(&resolved), ["a 1"]);
    let calls = calls(work.path());
    assert_eq!(calls.len(), 2);
    for call in &calls {
        assert!(call.iter().any(|argument| argument == "--only-binary=:all:"));
        assert!(call.iter().any(|argument| argument == "--no-input"));
        let environment = call.last().unwrap().as_object().unwrap();
        assert!(environment.keys().all(|name| name != "CARGO_MANIFEST_DIR"), "{environment:?}");
        assert!(environment.contains_key("PATH"));
    }
    let [.., dashes, first, second, _] = calls[0].as_slice() else { panic!("{calls:?}") };
    assert_eq!([dashes, first, second], ["--", "a>=1", "b[x]"]);
    assert!(calls[1].iter().any(|argument| argument == "--require-hashes"));
}

#[test]
fn a_wheel_that_is_not_the_resolved_one_is_not_kept() {
    let work = directory();
    fake(work.path(), FAKE);
    put_wheel(&work.path().join("served"), "a", "1", "");
    fs::create_dir(work.path().join("sent")).unwrap();
    put_wheel(&work.path().join("sent"), "a", "1", "Summary: evil\n");
    let told = store(work.path(), &lock(&[])).resolve(&requirements(&["a"])).unwrap_err();
    assert!(matches!(told, PackageError::Pip(_)), "{told}");
    assert!(!work.path().join("cache/wheels").exists());
    assert!(!work.path().join("cache/resolutions").exists());
}

#[test]
fn a_wheel_that_breaks_a_rule_is_not_kept() {
    let work = directory();
    fake(work.path(), FAKE);
    let bomb = vec![0; 4 << 20];
    let bytes = wheel_bytes("a", "1", "", &[("a.py", &bomb)]);
    fs::write(work.path().join("served/a-1-py3-none-any.whl"), bytes).unwrap();
    let told = store(work.path(), &lock(&[])).resolve(&requirements(&["a"])).unwrap_err();
    assert!(told.to_string().contains("inflates too much"), "{told}");
    assert!(!work.path().join("cache/wheels").exists());
}

#[test]
fn what_a_directory_has_of_a_name_is_all_that_pip_may_use() {
    let (work, wheels) = (directory(), directory());
    fake(work.path(), FAKE);
    put_wheel(&work.path().join("served"), "a", "1", "");
    put_wheel(wheels.path(), "private", "1", "");
    put_wheel(wheels.path(), "private", "2", "");
    put_wheel(wheels.path(), "private", "3b1", "");
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let store = store_with(work.path(), &lock(&[]), options);
    // The file with the lines is gone after the call, so the fake keeps a copy.
    let program = FAKE.replace(
        "after = ",
        "shutil.copy('constraints.txt', here) if action == 'install' else None\nafter = ",
    );
    fake(work.path(), &program);
    store.resolve(&requirements(&["a", "private<9"])).unwrap();
    let lines = fs::read_to_string(work.path().join("constraints.txt")).unwrap();
    assert_eq!(lines.lines().count(), 1);
    assert!(lines.starts_with("private @ file:///") && lines.contains("private-2-"), "{lines}");
}

#[test]
fn a_wheel_of_a_directory_that_fits_is_not_replaced_whatever_pip_prefers() {
    let (work, wheels) = (directory(), directory());
    put_wheel(wheels.path(), "private", "2", "");
    // Chooses somebody else's `private` until it may use no other than the owner's.
    let program = FAKE.replace(
        "    install = []\n",
        "    install = []\n    if '--constraint' in arguments:\n        \
         lines = open(after('--constraint')).read().split()\n        \
         os.remove(here + '/served/private-9-py3-none-any.whl')\n        \
         shutil.copy(lines[2][len('file://'):], here + '/served')\n",
    );
    fake(work.path(), &program);
    put_wheel(&work.path().join("served"), "a", "1", "Requires-Dist: private>=1\n");
    put_wheel(&work.path().join("served"), "private", "9", "");
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let store = store_with(work.path(), &lock(&[]), options);
    let resolved = store.resolve(&requirements(&["a"])).unwrap();
    assert_eq!(names(&resolved), ["a 1", "private 2"]);
    let runs = calls(work.path());
    let constrained: Vec<bool> =
        runs.iter().map(|call| call.iter().any(|word| word == "--constraint")).collect();
    assert_eq!(constrained, [false, true, false]);
}

#[test]
fn pip_trusts_the_owners_authorities_and_those_that_it_did_before() {
    let work = directory();
    let program = FAKE.replace("after = ", "shutil.copy(os.environ['PIP_CERT'], here)\nafter = ");
    fake(work.path(), &program);
    put_wheel(&work.path().join("served"), "a", "1", "");
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    openssl.args(["-nodes", "-subj", "/CN=private", "-keyout", "/dev/null", "-out", "-"]);
    let pem = openssl.output().unwrap().stdout;
    let mut authorities = Authorities::default();
    authorities.add_pem(&pem).unwrap();
    let options = StoreOptions { authorities: authorities.clone(), ..StoreOptions::default() };
    store_with(work.path(), &lock(&[]), options).resolve(&requirements(&["a"])).unwrap();
    let mut kept = Authorities::default();
    kept.add_pem(&fs::read(work.path().join("authorities.pem")).unwrap()).unwrap();
    let own = authorities.der().next().unwrap();
    assert!(kept.der().any(|other| other == own) && kept.der().count() > 1);
}

#[test]
fn a_native_package_that_the_index_lacks_is_fetched_from_pyodide() {
    let work = directory();
    // Chooses the stub of numpy from the directory of links.
    let program = FAKE.replace(
        "    install = []\n",
        "    install = []\n    links = after('--find-links')\n    \
         [shutil.copy(links + '/' + f, here + '/served') for f in os.listdir(links)]\n",
    );
    fake(work.path(), &program);
    let bytes = wheel_bytes("numpy", "2.4.6", "", &[("numpy/core.so", b"\0asm")]);
    let file = "numpy-2.4.6-cp314-cp314-pyemscripten_2026_0_wasm32.whl";
    let json = lock(&[("numpy", "numpy", file, Digest::of(&bytes), &[])]);

    let error = store(work.path(), &json).resolve(&requirements(&["numpy"])).unwrap_err();
    assert!(error.to_string().contains(file), "{error}");

    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (log, sent) = (Arc::clone(&asked), bytes.clone());
    let fetch = move |files: &[Wanted], into: &Path| {
        for file in files {
            log.lock().unwrap().push(file.name().to_owned());
            fs::write(into.join(file.name()), &sent).unwrap();
        }
        Ok(())
    };
    let options = StoreOptions { fetch: Some(Arc::new(fetch)), ..StoreOptions::default() };
    let resolved =
        store_with(work.path(), &json, options).resolve(&requirements(&["numpy"])).unwrap();
    assert_eq!(resolved.wheels()[0].digest(), Digest::of(&bytes));
    assert_eq!(*asked.lock().unwrap(), [file]);

    let evil = directory();
    fake(evil.path(), &program);
    let fetch = |files: &[Wanted], into: &Path| {
        fs::write(into.join(files[0].name()), b"evil").unwrap();
        Ok(())
    };
    let options = StoreOptions { fetch: Some(Arc::new(fetch)), ..StoreOptions::default() };
    let told = store_with(evil.path(), &json, options).resolve(&requirements(&["numpy"]));
    assert!(matches!(told.unwrap_err(), PackageError::Digest { .. }));
    assert!(!evil.path().join("cache/wheels").exists());
}

#[test]
fn a_report_for_another_environment_is_refused() {
    let work = directory();
    fake(work.path(), &FAKE.replace("json.loads(markers)", "{'sys_platform': 'linux'}"));
    let told = store(work.path(), &lock(&[])).resolve(&requirements(&["a"])).unwrap_err();
    assert!(matches!(told, PackageError::Pip(_)), "{told}");
}

#[test]
fn a_report_that_is_nonsense_is_refused() {
    let environment: std::collections::BTreeMap<_, _> = super::super::interpreter::MARKERS.into();
    let environment = serde_json::to_string(&environment).unwrap();
    let item = |name: &str, version: &str, hash: &str| {
        format!(
            r#"{{"metadata": {{"name": "{name}", "version": "{version}"}},
            "download_info": {{"archive_info": {{"hashes": {{"sha256": "{hash}"}}}}}}}}"#
        )
    };
    let parse = |items: &str| {
        report::parse(
            format!(r#"{{"install": [{items}], "environment": {environment}}}"#).as_bytes(),
        )
    };
    let good = "0".repeat(64);
    assert_eq!(parse(&item("A.b", "1", &good)).unwrap()[0].name, "a-b");
    for items in [
        item("--index-url=x", "1", &good),
        item("a\\n--index-url=x", "1", &good),
        item("a", "1 --hash", &good),
        item("a", "1", &good[1..]),
        item("a", "1", &good.replace('0', "é")),
        r#"{"metadata": {"name": "a", "version": "1"}, "download_info": {}}"#.to_owned(),
    ] {
        assert!(parse(&items).is_err(), "{items}");
    }
    assert!(report::parse(&b"[".repeat(100_000)).is_err());
}

#[test]
fn lists_of_a_report_are_bounded_and_markers_that_do_not_matter_are_left_out() {
    let markers =
        super::super::interpreter::MARKERS.map(|(name, value)| format!("{name:?}: {value:?}"));
    let markers = markers.join(", ");
    let others: Vec<String> = (0..10_000).map(|at| format!("\"m{at}\": \"\"")).collect();
    let digest = "0".repeat(64);
    let item = |dependencies: usize| {
        let requires = vec![r#""x""#; dependencies].join(",");
        format!(
            r#"{{"metadata": {{"name": "a", "version": "1", "requires_dist": [{requires}]}},
            "requested_extras": [{requires}],
            "download_info":
            {{"archive_info": {{"hashes": {{"sha256": "{digest}", "md5": ""}}}}}}}}"#
        )
    };
    let parse = |items: &str| {
        let environment = format!("{markers}, {}", others.join(","));
        let report = format!(r#"{{"install": [{items}], "environment": {{{environment}}}}}"#);
        report::parse(report.as_bytes()).map_err(|error| error.to_string())
    };
    assert_eq!(parse(&item(5000)).unwrap()[0].requires.len(), 5000);
    assert_eq!(parse(&vec![item(0); 5000].join(",")).unwrap().len(), 5000);
    for items in [item(5001), vec![item(0); 5001].join(",")] {
        let told = parse(&items).unwrap_err();
        assert!(told.contains("limit 5000 in a list"), "{told}");
    }
}

#[test]
fn a_program_that_does_not_end_is_killed() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo begun >&2; exec sleep 1000"]);
    let ended =
        process::run(&mut command, Duration::from_millis(300), &GivenUp::default()).unwrap();
    assert!(ended.status.is_none());
}

#[test]
fn a_program_that_floods_its_output_is_cut() {
    let mut command = Command::new("sh");
    command.args(["-c", "head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero; exit 3"]);
    let ended = process::run(&mut command, Duration::from_mins(1), &GivenUp::default()).unwrap();
    assert_eq!(ended.status.and_then(|status| status.code()), Some(3));
    assert_eq!(ended.stderr.len(), 256 << 10);
}

#[test]
fn the_reason_of_a_failure_names_no_server_and_no_secret() {
    let told = report::failure(
        "WARNING: x\nERROR: first\nERROR: Could not install from \
         https://user:secret@index.internal/simple (host='index.internal', port=1) for a\n\
         ERROR: ResolutionImpossible: for help visit https://pip.example\n",
    );
    let Failure::Unresolved(reason) = told else { panic!("{told:?}") };
    assert!(reason.starts_with("Could not install") && reason.ends_with("for a"), "{reason}");
    assert!(!reason.contains("secret") && !reason.contains("internal"), "{reason}");
    let Failure::Unresolved(long) = report::failure(&format!("ERROR: {}", "x ".repeat(5000)))
    else {
        panic!("no reason")
    };
    assert!(long.len() <= 500 && long.contains('…'));
    let broken = report::failure("Traceback\nModuleNotFoundError: No module named 'pip'\n");
    assert_eq!(broken, Failure::Broken("ModuleNotFoundError: No module named 'pip'".to_owned()));
    assert_eq!(report::failure(""), Failure::Silent);
    // A character that is left out does not hide what is a server without it.
    let parted = report::failure("ERROR: see https:/\u{1}/index.example/ or a\u{1b}@b");
    assert_eq!(parted, Failure::Unresolved("see (a server) or (a server)".to_owned()));
}

#[test]
fn an_index_that_does_not_answer_and_a_package_without_a_wheel_are_told_apart() {
    let end = "ERROR: Could not find a version that satisfies the requirement a (from versions: \
               none)\nERROR: No matching distribution found for a==1\n";
    let failed = |before: &str, after: &str| report::failure(&format!("{before}{end}{after}"));
    for (why, expected) in [
        ("[Errno 111] Connection refused", Unreachable::Refused),
        ("[Errno -2] Name or service not known", Unreachable::Name),
        ("ConnectTimeoutError(x, 'timed out')", Unreachable::Slow),
        (
            "SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))",
            Unreachable::Certificate,
        ),
        ("ProxyError('Cannot connect to proxy.', OSError('403'))", Unreachable::Proxy),
        ("RemoteDisconnected", Unreachable::Unknown),
    ] {
        let warning = format!(
            "WARNING: Retrying (Retry(total=0)) after connection broken by '{why}': /simple/a/\n"
        );
        assert_eq!(failed(&warning, ""), Failure::Unreachable(expected), "{why}");
    }
    let untrusted = "WARNING: The repository located at index.internal is not a trusted or \
                     secure host and is being ignored.\n";
    assert_eq!(failed(untrusted, ""), Failure::Unreachable(Unreachable::Untrusted));
    let Failure::Unresolved(reason) = failed("", "isolet: no file fits: A\n") else { panic!() };
    assert_eq!(
        reason,
        "no wheel of a==1 runs here, which has to be pure Python or built for WebAssembly"
    );
    let Failure::Unresolved(reason) = failed("", "isolet: no file fits: b\n") else { panic!() };
    assert_eq!(reason, "No matching distribution found for a==1");
}

#[test]
fn a_pip_that_cannot_be_started_is_told_of() {
    let work = directory();
    let told = store(work.path(), &lock(&[])).resolve(&requirements(&["a"])).unwrap_err();
    assert!(told.to_string().contains("does not start"), "{told}");
    fake(work.path(), "#!/bin/sh\nexit 7\n");
    let told = store(work.path(), &lock(&[])).resolve(&requirements(&["a"])).unwrap_err();
    assert!(told.to_string().contains('7'), "{told}");
}
