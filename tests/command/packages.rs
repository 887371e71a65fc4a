//! Tests of `isolet packages`, and of private certificate authorities.

use isolet::MissingModule;
use isolet_pyodide_assets::Digest;
use serde_json::Value;

use crate::endpoint::{Endpoint, certificates};
use isolet_test_support::server::{Response, Server};
use isolet_test_support::{Ran, Scratch, command, wheel};

fn run(scratch: &Scratch, cache: &str, args: &[&str]) -> Ran {
    let mut command = command(args);
    command.env("XDG_CACHE_HOME", scratch.path().join(cache));
    command.output().unwrap().into()
}

#[test]
fn fetched_packages_run_without_a_network_and_without_a_cache() {
    let scratch = Scratch::new("packages-fetch");
    let (wheels, to) = (scratch.path().join("wheels"), scratch.path().join("to"));
    std::fs::create_dir(&wheels).unwrap();
    wheel(&wheels, "greeting", "1.0", "def hello(): return 'hi'");
    wheel(&wheels, "other", "2.0", "");
    let (wheels, to) = (wheels.to_str().unwrap(), to.to_str().unwrap());
    let fetch = ["packages", "fetch", "greeting,other", "--wheels", wheels, "--offline"];
    let ran = run(&scratch, "cache", &[&fetch[..], &["--to", to]].concat());
    let lines: Vec<Vec<&str>> =
        ran.stdout.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(lines, [["greeting", "1.0"], ["other", "2.0"]], "{}", ran.stderr);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.starts_with("wrote 2 wheels (") && ran.stderr.contains(to));

    let code = "import greeting; print(greeting.hello())";
    let offline = ["run", "-q", "--wheels", to, "--offline", "--with", "greeting", "-c", code];
    let ran = run(&scratch, "empty", &offline);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hi\n", ""));
}

/// A page of an index with files of which none fits, and none of another package.
#[test]
fn a_package_without_a_wheel_is_no_unknown_one_and_an_index_that_is_away_is_neither() {
    let scratch = Scratch::new("packages-index");
    let server = Server::start(|request| {
        if request.path != "/simple/native/" {
            return Response(404, Vec::new(), Vec::new());
        }
        let file = "native-1.0-cp314-cp314-manylinux_2_28_x86_64.whl";
        let page = format!("<html><body><a href=\"{file}\">{file}</a></body></html>");
        Response(200, vec![("Content-Type", "text/html".to_owned())], page.into())
    });
    let said = |index: &str, name: &str| {
        let mut command = command(["run", "--quiet", "--with", name, "-c", "1"]);
        command.env("XDG_CACHE_HOME", scratch.path()).env("PIP_INDEX_URL", index);
        command.env("PIP_RETRIES", "1").env("PIP_CONFIG_FILE", "/dev/null");
        for proxy in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(proxy);
        }
        let ran: Ran = command.output().unwrap().into();
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        ran.stderr
    };
    let index = server.url("/simple");
    let native = said(&index, "native");
    assert!(native.contains("no wheel of native runs here"), "{native}");
    assert!(native.contains("docs/concepts/packages.md"), "{native}");
    let unknown = said(&index, "unknown");
    assert!(unknown.contains("No matching distribution found for unknown"), "{unknown}");
    drop(server);
    let away = said(&index, "native");
    assert!(away.contains("the package index cannot be reached: it refuses"), "{away}");
    assert!(away.contains("`HTTPS_PROXY`") && away.contains("(`--wheels`)"), "{away}");
    assert!(!away.contains("::") && !away.contains("127.0.0.1"), "{away}");
}

#[test]
fn what_the_page_of_packages_has_no_wheel_of_is_known_to_have_none() {
    let root = isolet_test_support::root();
    let page = std::fs::read_to_string(root.join("docs/concepts/packages.md")).unwrap();
    let parts = page.split("no wheel of `").skip(1);
    let names = parts.map(|rest| rest.split(['`', '=', '<', '>']).next().unwrap());
    // Pyodide has a build of it, which no index has.
    for name in names.filter(|name| *name != "cvxpy-base") {
        let known = MissingModule::of(&name.replace('-', "_"));
        assert!(matches!(known, Some(MissingModule::NoWheel { .. })), "{name}: {known:?}");
    }
    // Modules that Pyodide knows by their packages' other names.
    let lock = std::fs::read(isolet_test_support::assets_dir().join("pyodide-lock.json")).unwrap();
    let lock: Value = serde_json::from_slice(&lock).unwrap();
    for package in lock["packages"].as_object().unwrap().values() {
        let name = package["name"].as_str().unwrap().to_ascii_lowercase();
        for module in package["imports"].as_array().unwrap() {
            let module = module.as_str().unwrap();
            let is_named_so = module.replace(['_', '.'], "-").to_ascii_lowercase()
                == name.replace(['_', '.'], "-");
            let is_public = !module.starts_with('_') && !module.contains(['.', '-']);
            if !is_public || is_named_so || module == "google" {
                continue;
            }
            let Some(MissingModule::Package { package, .. }) = MissingModule::of(module) else {
                panic!("{module} of {name}")
            };
            assert_eq!(package, name, "{module}");
        }
    }
}

#[test]
fn a_fetch_tells_in_json_what_it_wrote_or_why_it_did_not() {
    let scratch = Scratch::new("packages-json");
    let path = wheel(scratch.path(), "greeting", "1.0", "WORD = 1");
    let bytes = std::fs::read(path).unwrap();
    let wheels = scratch.path().to_str().unwrap();
    let to = scratch.path().join("to");
    let fetch = |name: &str| {
        let to = to.to_str().unwrap();
        let args = ["packages", "fetch", name, "--wheels", wheels, "--offline", "--json"];
        let ran = run(&scratch, "cache", &[&args[..], &["--to", to]].concat());
        assert_eq!(ran.stdout.lines().count(), 1, "{}{}", ran.stdout, ran.stderr);
        (serde_json::from_str::<Value>(&ran.stdout).unwrap(), ran.code)
    };
    let (written, code) = fetch("greeting");
    let expected = serde_json::json!({
        "directory": to.to_str(),
        "bytes": bytes.len(),
        "packages": [{
            "name": "greeting",
            "version": "1.0",
            "file_name": "greeting-1.0-py3-none-any.whl",
            "sha256": Digest::of(&bytes).to_string(),
            "bytes": bytes.len(),
        }],
    });
    assert_eq!((written, code), (expected, Some(0)));
    let (refused, code) = fetch("absent");
    let message = refused["diagnostics"]["message"].as_str().unwrap();
    assert!(message.starts_with("absent is not available"), "{refused}");
    assert_eq!(code, Some(2));
}

#[test]
fn a_guest_trusts_a_private_authority_only_if_the_owner_names_it() {
    let scratch = Scratch::new("ca-guest");
    certificates(scratch.path());
    let server = Endpoint::with_tls(scratch.path(), "hello");
    let address = &server.address;
    let ca = scratch.path().join("ca.pem");
    let ca = ca.to_str().unwrap();
    let url = format!("https://{address}/");
    let code = format!("import urllib.request as u; print(u.urlopen({url:?}).read().decode())");
    let allowed = ["run", "--allow-net", address];
    let ran = run(&scratch, "cache", &[&allowed[..], &["-c", &code]].concat());
    assert!(ran.stderr.contains("UnknownIssuer"), "{}", ran.stderr);
    let ran = run(&scratch, "cache", &[&allowed[..], &["--ca-file", ca, "-c", &code]].concat());
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hello\n", ""));
    // It allows no request by itself.
    let ran = run(&scratch, "cache", &["run", "--ca-file", ca, "-c", &code]);
    assert!(ran.stderr.contains("allow-net does not cover it"), "{}", ran.stderr);
}

#[test]
fn packages_come_from_a_mirror_with_a_private_authority_only_if_the_owner_names_it() {
    let scratch = Scratch::new("ca-mirror");
    certificates(scratch.path());
    let server = Endpoint::with_tls(scratch.path(), "hello");
    let address = &server.address;
    let ca = scratch.path().join("ca.pem");
    let mirror = format!("https://{address}/{{file}}");
    let with = ["run", "--with", "numpy==2.4.6", "--pyodide-packages", &mirror, "-c", ""];
    let ran = run(&scratch, "cache", &with);
    assert!(
        ran.stderr.contains("the authority of its certificate is not trusted"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("`--ca-file`"), "{}", ran.stderr);
    let ca_file = ["--ca-file", ca.to_str().unwrap()];
    let ran = run(&scratch, "cache", &[&with[..1], &ca_file, &with[1..]].concat());
    assert!(ran.stderr.contains("the server has 5 bytes") || ran.stderr.contains("wrong sha256"));
}

#[test]
fn a_file_that_names_no_authority_is_an_error() {
    let scratch = Scratch::new("ca-wrong");
    let file = scratch.file("ca.pem", "no certificate");
    for args in
        [&["run", "--ca-file", &file, "-c", ""][..], &["assets", "fetch", "--ca-file", &file]]
    {
        let ran = run(&scratch, "cache", args);
        let expected = format!(
            "error: the certificate authorities in `{file}` cannot be used: it has no certificate \
             in PEM form (`BEGIN CERTIFICATE`)\n"
        );
        assert_eq!((ran.stderr.as_str(), ran.code), (expected.as_str(), Some(2)));
    }
}
