"""Sandboxes of a node have names below its domain, with TLS: clients that know no other address of
theirs work, such as LiteLLM and E2B's own with nothing but a domain."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Otherwise it asks the network for prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import httpx
import pytest
import trustme
from e2b_code_interpreter import Sandbox
from litellm.sandbox import main as litellm
from node_process import serving, started

DOMAIN = "sandboxes.localhost"
SECONDS = 60


@dataclass
class Served:
    port: int
    directory: Path
    authority: trustme.CA

    @property
    def domain(self) -> str:
        return f"{DOMAIN}:{self.port}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configured(directory: Path, port: int, more: str = "") -> str:
    """The path of the configuration of a node with two tenants."""
    keys = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("one", "two")}
    tenants = "".join(f'[tenants.{name}]\nkeys = ["sha256:{keys[name]}"]\n' for name in keys)
    config = directory / "node.toml"
    config.write_text(f'domain = "{DOMAIN}:{port}"\n{more}{tenants}')
    return str(config)


def certified(authority: trustme.CA, directory: Path) -> None:
    """Writes a certificate and its key."""
    issued = authority.issue_cert(f"*.{DOMAIN}", DOMAIN)
    (directory / "node.pem").write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    (directory / "node.key").write_bytes(issued.private_key_pem.bytes())
    (directory / "ca.pem").write_bytes(authority.cert_pem.bytes())


def tls(directory: Path) -> str:
    return f'[tls]\ncertificate = "{directory}/node.pem"\nkey = "{directory}/node.key"\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory, port, authority = tmp_path_factory.mktemp("names"), free_port(), trustme.CA()
    certified(authority, directory)
    config = configured(directory, port, tls(directory))
    with serving("--config", config, listen=f"127.0.0.1:{port}") as address:
        assert address == f"https://127.0.0.1:{port}"
        yield Served(port, directory, authority)


@pytest.fixture(autouse=True)
def names(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name of the domain is this machine's, and its authority is trusted."""
    resolve = socket.getaddrinfo

    def resolved(host, *args, **kwargs):
        name = host.decode() if isinstance(host, bytes) else host
        own = name is not None and name.endswith(DOMAIN)
        return resolve("127.0.0.1" if own else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setenv("SSL_CERT_FILE", str(served.directory / "ca.pem"))


def test_litellm_runs_code_in_a_sandbox_by_its_name(served: Served) -> None:
    async def run() -> None:
        own = {"api_key": "one", "api_base": f"https://api.{served.domain}"}
        code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7"
        result = await litellm.acode_interpreter_tool("e2b", code, **own)
        assert (result.stdout, result.stderr, result.error) == ("out\n", "err\n", None)
        assert result.results[0]["text"] == "42"
        assert result.execution_count == 1
        handle = await litellm.acreate_sandbox("e2b", **own)
        assert handle.domain == served.domain
        await litellm.arun_code("e2b", handle, "x = 1")
        kept = await litellm.arun_code("e2b", handle, "x + 1")
        assert kept.results[0]["text"] == "2"
        failed = await litellm.arun_code("e2b", handle, "1 / 0")
        assert failed.error is not None
        assert failed.error["name"] == "ZeroDivisionError"
        assert await litellm.adelete_sandbox("e2b", handle)
        assert not await litellm.adelete_sandbox("e2b", handle)

    asyncio.run(run())


def test_e2bs_own_client_needs_a_domain_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("E2B_DOMAIN", served.domain)
    monkeypatch.setenv("E2B_API_KEY", "one")
    with Sandbox.create() as sandbox:
        assert sandbox.run_code("6 * 7").text == "42"
        sandbox.files.write("a.txt", "a")
        assert sandbox.commands.run("cat a.txt").stdout == "a"
        assert sandbox.is_running()
        sandbox.kill()


def test_a_sandbox_is_its_tenants_whatever_name_it_is_asked_by(served: Served) -> None:
    with httpx.Client(verify=ssl.create_default_context(cafile=served.directory / "ca.pem")) as web:
        own = {"X-API-Key": "one"}
        made = web.post(f"https://api.{served.domain}/sandboxes", json={}, headers=own).json()
        name = f"{made['sandboxID']}.{served.domain}"
        cell = {"code": "6 * 7"}
        token = {"X-Access-Token": made["envdAccessToken"]}
        ran = web.post(f"https://49999-{name}/execute", json=cell, headers=token)
        assert ran.status_code == 200
        assert '"42"' in ran.text
        for other in ({}, {"X-API-Key": "two"}, {"X-Access-Token": "0" * 32}):
            refused = web.post(f"https://49999-{name}/execute", json=cell, headers=other)
            assert refused.status_code in (401, 502)
            assert "42" not in refused.text
        closed = web.get(f"https://3000-{name}/", headers=token)
        assert closed.status_code == 502
        assert "nothing on port 3000" in closed.json()["message"]
        assert web.get(f"https://49983-{name}/health", headers=token).status_code == 204
        web.delete(f"https://api.{served.domain}/sandboxes/{made['sandboxID']}", headers=own)
        gone = web.post(f"https://49999-{name}/execute", json=cell, headers=token)
        assert gone.status_code == 502
        assert "not found" in gone.json()["message"]


def shown_certificate(served: Served) -> bytes:
    """The certificate that the node shows."""
    context = ssl.create_default_context(cafile=served.directory / "ca.pem")
    with (
        socket.create_connection(("127.0.0.1", served.port), SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=f"api.{DOMAIN}") as connection,
    ):
        certificate = connection.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate


def test_a_new_certificate_is_shown_after_a_signal(tmp_path: Path) -> None:
    port, authority = free_port(), trustme.CA()
    served = Served(port, tmp_path, authority)
    certified(authority, tmp_path)
    config = configured(tmp_path, port, tls(tmp_path))
    node, _ = started("--config", config, listen=f"127.0.0.1:{port}")
    try:
        before = shown_certificate(served)
        # What speaks no TLS is not answered.
        with socket.create_connection(("127.0.0.1", port), SECONDS) as plain:
            plain.sendall(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n")
            assert b"HTTP" not in plain.recv(100)
        certified(authority, tmp_path)
        node.send_signal(signal.SIGHUP)
        while shown_certificate(served) == before:
            assert node.poll() is None
    finally:
        node.kill()
        node.wait(SECONDS)


def test_a_proxy_with_tls_passes_the_name_on(tmp_path: Path) -> None:
    with serving("--config", configured(tmp_path, 443)) as address, httpx.Client() as proxy:
        own = {"X-API-Key": "one"}
        made = proxy.post(f"{address}/sandboxes", json={}, headers=own).json()
        headers = {
            "Host": f"49999-{made['sandboxID']}.{DOMAIN}",
            "E2B-Traffic-Access-Token": made["trafficAccessToken"],
        }
        ran = proxy.post(f"{address}/execute", json={"code": "6 * 7"}, headers=headers)
        assert ran.status_code == 200
        assert '"42"' in ran.text


def test_a_key_of_another_certificate_is_refused_at_the_start(tmp_path: Path) -> None:
    certified(trustme.CA(), tmp_path)
    (tmp_path / "node.key").write_bytes(trustme.CA().issue_cert("a").private_key_pem.bytes())
    config = configured(tmp_path, 443, tls(tmp_path))
    with pytest.raises(AssertionError, match="the node ended with status"):
        started("--config", config)
