"""Secrets that guests use and do not see, from sessions of this machine and of a node."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from node_process import serving

import isolet
from isolet import Secret, aio, node

CODE = """
import os, urllib.request as u
key, form = os.environ["KEY"], os.environ["FORM"]
request = u.Request(url, f"k={key}&f={form}".encode(), {"Authorization": "Bearer " + key})
u.urlopen(request).read().decode()
"""


class Echo(BaseHTTPRequestHandler):
    """Repeats what it gets."""

    seen: list[tuple[str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append((self.headers["Authorization"], body))
        answer = " ".join(self.seen[-1]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None: ...


@contextmanager
def echo() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    seen: list[tuple[str, str]] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Echo,), {"seen": seen})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", seen
        server.shutdown()


def policy(server: str) -> dict[str, Any]:
    hosts = [f"http://{server}"]
    secrets = {
        "KEY": Secret("sk-canary-key", hosts=hosts),
        "FORM": Secret("sk-canary-form", hosts=hosts, in_bodies=True),
    }
    return {"allow_net": [server], "secrets": secrets}


def check(answer: object, seen: list[tuple[str, str]]) -> None:
    [(authorization, body)] = seen
    assert authorization == "Bearer sk-canary-key"
    assert body.startswith("k=ISOLET_SECRET_KEY_")
    assert body.endswith("&f=sk-canary-form")
    assert isinstance(answer, str)
    assert answer.startswith("Bearer ISOLET_SECRET_KEY_")
    assert "canary" not in answer


def test_a_secret_is_sent_to_its_hosts_and_not_seen() -> None:
    with echo() as (server, seen), isolet.Sandbox(**policy(server)).session() as session:
        check(session.eval(CODE, inputs={"url": f"http://{server}/"}), seen)


def test_a_secret_is_sent_by_asyncio() -> None:
    async def work() -> None:
        with echo() as (server, seen):
            async with aio.Sandbox(**policy(server)).session() as session:
                check(await session.eval(CODE, inputs={"url": f"http://{server}/"}), seen)

    asyncio.run(work())


def test_a_secret_is_sent_from_a_node(tmp_path: Any) -> None:
    with echo() as (server, seen):
        config = tmp_path / "node.toml"
        config.write_text(f"[ceiling]\nallow_net = ['{server}']\n")
        arguments = ["--config", str(config)]
        with (
            serving(*arguments) as address,
            node.Client(address) as client,
            client.session(**policy(server)) as session,
        ):
            check(session.eval(CODE, inputs={"url": f"http://{server}/"}), seen)


def test_a_secret_is_not_shown() -> None:
    secret = Secret("sk-canary", hosts=["a.example"])
    assert "canary" not in repr(secret)
    with pytest.raises(isolet.ConfigError, match=r"has to be `Secret\(...\)`") as caught:
        isolet.Sandbox(secrets={"KEY": "sk-canary"})  # type: ignore[dict-item]
    assert "canary" not in str(caught.value)
    with pytest.raises(isolet.ConfigError, match="`KEY` has 6 bytes, it needs 8 to 4096") as caught:
        isolet.run("1", secrets={"KEY": Secret("canary", hosts=["a.example"])})
    assert "canary" not in str(caught.value)
