//! Part D of the threat table: the network, as a guest tries to use it and as servers see it.

use isolet_test_support::command;
use isolet_test_support::server::Server;

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
