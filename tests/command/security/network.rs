//! Part D of the threat table: the network, as a guest tries to use it and as servers see it.

use isolet_test_support::server::Server;
use isolet_test_support::{command, isolet};

/// The guest is told the same of every refused address; only the user learns why.
#[test]
fn why_an_address_is_refused_is_told_to_the_user_and_not_to_the_guest() {
    let code = "import urllib.request\n\
                try: urllib.request.urlopen('http://db.example/')\n\
                except Exception as error: print(error, flush=True); raise";
    let refused = |options: &[&str]| {
        let ran = isolet([&["run"], options, &["-c", code]].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let hint = ran.stderr.lines().last().unwrap().to_owned();
        (ran.stdout, hint)
    };
    let (told, hint) = refused(&["--allow-net", "db.example", "--resolve", "db.example=10.1.2.3"]);
    assert!(!told.contains("10.1.2.3"), "{told}");
    assert_eq!(
        hint,
        "hint: `db.example` resolves to 10.1.2.3, which is not public but private; \
         `--allow-net 10.1.2.3` allows it"
    );
    let (same, hint) = refused(&[]);
    assert_eq!(same, told);
    assert_eq!(hint, "hint: `--allow-net db.example` allows requests to this server");
    let (same, hint) = refused(&["--allow-net", "db.example", "--deny-net", "db.example"]);
    assert_eq!(same, told);
    assert_eq!(hint, "hint: `--deny-net` denies requests to `db.example`");
    // A program of the user learns it as the user does.
    let ran = isolet(["run", "--json", "--deny-net", "db.example", "-c", code]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["stdout"], told);
    assert_eq!(report["diagnostics"]["hint"], "`--deny-net` denies requests to `db.example`");
    // A run that gets along is told nothing.
    let ran = isolet(["run", "-c", &code.replace("; raise", "")]);
    assert_eq!((ran.stdout, ran.stderr.as_str()), (told, ""));
}

/// D12: a proxy named in the host's environment is not used.
#[test]
fn the_proxy_of_the_hosts_environment_is_not_used() {
    let proxy = Server::with_text("through the proxy");
    let server = Server::with_text("direct");
    let code = format!(
        "import urllib.request; print(urllib.request.urlopen({:?}).read().decode())",
        server.url("/")
    );
    let mut command = command(["run", "--allow-net", &server.rule(), "-c", &code]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"] {
        command.env(name, proxy.url(""));
    }
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "direct\n");
    assert_eq!((proxy.connections(), server.requests().len()), (0, 1));
}
