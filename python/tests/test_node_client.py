"""`isolet.node`: sessions on nodes, over HTTP, as those of this machine are used."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import hashlib
import json
import math
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import SECONDS, in_threads, until
from node_process import serving, started

import isolet
from isolet.node import Client, Session

KEYS = {"a": "key of a", "b": "key of b"}
CONFIG = "\n".join(
    f'[tenants.{name}]\nkeys = ["sha256:{hashlib.sha256(key.encode()).hexdigest()}"]'
    for name, key in KEYS.items()
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serving() as address, Client(address) as client:
        yield client


@pytest.fixture
def remote(client: Client) -> Iterator[Session]:
    with client.session() as session:
        yield session


def configured(path: Path, config: str) -> list[str]:
    """The arguments of a node with a configuration."""
    file = path / "node.toml"
    file.write_text(config)
    return ["--config", str(file)]


@pytest.mark.parametrize(
    "code",
    [
        "print('out'); import sys; print('err', file=sys.stderr); 40 + 2",
        "def f(): 1 / 0\nf()",
        "raise ValueError('no', 1) from KeyError('k')",
        "import sys; sys.exit(3)",
        "print('begun')\nwhile True: pass",
        "open('made.txt', 'w').write('x'); object()",
        "display({'image/png': b'\\x89PNG', 'text/plain': 'p'}, raw=True)",
        "SUBMIT(answer='42')",
        "print('x' * (2 << 20))",
        "import os; os._exit(7)",
    ],
)
def test_a_run_does_the_same_as_on_this_machine(client: Client, code: str) -> None:
    policy: Any = {"limits": isolet.Limits(run_time=1), "submit": {"answer": str}}
    there = client.run(code, **policy)
    here = isolet.run(code, **policy)
    for name in ("status", "value", "value_error", "stdout", "stderr", "exit_code", "error"):
        assert getattr(there, name) == getattr(here, name), name
    for name in ("displays", "files", "truncated", "session_alive"):
        assert getattr(there, name) == getattr(here, name), name
    assert there.locals.keys() == here.locals.keys()
    # It says how long it has taken, and where an object is.
    differing = r"[\d.]+ s|0x[0-9a-f]+"
    assert re.sub(differing, "", there.text) == re.sub(differing, "", here.text)
    assert there.usage.wall_time > 0


@pytest.mark.parametrize(
    "value",
    [
        None,
        1 << 100,
        -0.5,
        math.inf,
        -math.inf,
        "größe \x00 \u2028 \U0001f600",
        b"\x00\xff",
        {"a": [1, {"b": b""}]},
        {1: "one", None: 2, b"k": 3.5},
        {"$bytes": "AA=="},
        {"$dict": [], "and": "more"},
        [[{"$float": "nan"}]],
    ],
)
def test_values_cross_both_ways_without_loss(remote: Session, value: Any) -> None:
    remote["value"] = value
    found = remote["value"]
    assert (found, type(found)) == (value, type(value))
    assert remote.eval(f"value == {value!r}", inputs={"inf": math.inf})
    assert remote.run("given", inputs={"given": value}).value == value


def test_what_is_no_number_crosses_too(remote: Session) -> None:
    assert math.isnan(remote.eval("[given]", inputs={"given": math.nan})[0])


def test_what_cannot_cross_is_refused_by_its_path(client: Client, remote: Session) -> None:
    with pytest.raises(isolet.TransferError, match=r"inputs\['x'\]\[1\]"):
        remote.run("x", inputs={"x": [1, object()]})
    with pytest.raises(isolet.TransferError, match="4300"):
        remote.set({"x": 10**5000})
    with pytest.raises(isolet.TransferError, match="67108864"):
        remote.files.put("large", bytes((64 << 20) + 1))
    with pytest.raises(isolet.TransferError):
        remote.set({"no name": 1})
    with pytest.raises(isolet.TransferError, match="object"):
        remote.eval("object()")


def test_variables_are_set_read_listed_and_deleted(remote: Session) -> None:
    remote.set({"größe": 1, "b": [2]})
    assert (remote["größe"], remote.get("b"), remote.get("c", 3)) == (1, [2], 3)
    assert ("b", "list", "[2]") in [(v.name, v.type, v.repr) for v in remote.variables()]
    assert (remote.delete("b"), remote.delete("b")) == (True, False)
    del remote["größe"]
    with pytest.raises(KeyError):
        remote["größe"]
    with pytest.raises(KeyError):
        del remote["größe"]


def test_files_are_written_read_and_removed(remote: Session, tmp_path: Path) -> None:
    (tmp_path / "host").write_bytes(b"\x00of the host")
    remote.files.put("data/ä b?#%.txt", "text")
    remote.files.put("/tmp/copy", tmp_path / "host")
    assert remote.eval("open('/home/user/data/ä b?#%.txt').read()") == "text"
    assert remote.files.get("/tmp/copy") == b"\x00of the host"
    assert (remote.files.remove("/tmp/copy"), remote.files.remove("/tmp/copy")) == (True, False)
    with pytest.raises(FileNotFoundError):
        remote.files.get("/tmp/copy")


def test_a_session_keeps_its_state_until_it_is_reset(remote: Session) -> None:
    remote.run("x = 1")
    assert remote.eval("x + 1") == 2
    remote.reset()
    assert remote.run("x").failure == "NameError: name 'x' is not defined"
    remote.renew(ttl=100)
    assert remote.eval("return sum(map(int, input().split()))", stdin="1 2", allow_return=True) == 3


def test_a_program_keeps_its_variables_if_it_is_to(remote: Session) -> None:
    remote.run("kept = 41", program=True)
    assert remote.get("kept") is None
    remote.run("kept = 41", program=True, keep_variables=True)
    *_, execution = remote.stream("kept += 1", program=True, keep_variables=True)
    assert (execution.status, remote.get("kept")) == ("completed", 42)


def test_guests_call_functions_of_the_client_many_at_once(client: Client) -> None:
    context = contextvars.ContextVar("context", default="none")
    context.set("of the caller")
    together = threading.Barrier(4)

    def meet(value: Any, *, times: int = 1) -> Any:
        """Meets the others."""
        together.wait(SECONDS)
        return [value] * times

    async def later(value: Any) -> Any:
        await asyncio.sleep(0)
        return {"value": value, "context": context.get()}

    def fail(kind: str) -> None:
        errors = {
            "key": KeyError("k"),
            "value": ValueError("größe"),
            "json": json.JSONDecodeError("bad", "[1,", 2),
        }
        if kind == "group":
            raise ExceptionGroup("some", [errors["key"], ExceptionGroup("inner", [errors["json"]])])
        raise errors[kind]

    with client.session(tools=[meet, later, fail]) as session:
        assert session.eval("meet.__doc__") == "Meets the others."
        assert session.eval("meet.map([b'1', 2, None, 4])") == [[b"1"], [2], [None], [4]]
        assert session.eval("later(b'1')") == {"value": b"1", "context": "of the caller"}
        assert session.run("fail('key')").failure == "KeyError: 'k'"
        assert session.run("fail('value')").failure == "ValueError: größe"
        assert session.run("fail(1)").failure.startswith("TypeError: ")
        code = "import json\ntry: fail('json')\nexcept json.JSONDecodeError as e: at = e.pos\nat"
        assert session.eval(code) == 2
        if sys.version_info >= (3, 11):
            code = "try: fail('group')\nexcept* ValueError as group: inner = group.exceptions[0]\n"
            code += "except* KeyError as group: key = group.exceptions[0].args\n"
            code += "[*key, type(inner).__name__, inner.exceptions[0].pos]"
            assert session.eval(code) == ["k", "ExceptionGroup", 2]
    assert client.run("later(1)['value']", tools=[later], inputs={"a": 1}).value == 1


def test_what_a_tool_returns_and_cannot_cross_the_guest_gets(client: Client) -> None:
    tools = {"strange": lambda: object(), "large": lambda: "x" * (65 << 20)}
    with client.session(tools=tools) as session:
        assert session.run("strange()").failure.startswith("TypeError: `strange()` is an object")
        assert session.run("large()").failure.startswith("TypeError: a request has")


def test_a_coroutine_that_nobody_waits_for_is_cancelled(client: Client) -> None:
    cancelled = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            cancelled.set()

    with client.session(tools=[isolet.tool(forever, timeout=0.2)]) as session:
        assert session.run("forever()").failure.startswith("TimeoutError")
        assert cancelled.wait(SECONDS)


def test_what_ends_the_program_in_a_tool_ends_the_run(client: Client) -> None:
    def end() -> None:
        raise SystemExit(3)

    with client.session(tools=[end]) as session:
        with pytest.raises(SystemExit) as caught:
            session.run("end()\nwhile True: pass")
        assert caught.value.code == 3
        assert session.eval("1") == 1


def test_output_comes_as_it_is_written(client: Client) -> None:
    seen: list[str] = []
    with client.session(tools={"seen": lambda: list(seen)}) as session:
        execution = session.run(
            "print('one', flush=True)\nwhile not seen(): pass\n"
            "import sys; print('two', file=sys.stderr); display({'text/plain': 'x'}, raw=True)",
            on_stdout=seen.append,
            on_stderr=seen.append,
            on_display=lambda display: seen.append(str(display.data["text/plain"])),
        )
        assert execution.ok, execution
        assert "".join(seen) == "one\ntwo\nx"
        *items, last = session.stream("print(1)\n1 / 0")
        assert "".join(map(str, items)) == "1\n"
        assert isinstance(last, isolet.Execution)
        assert last.failure == "ZeroDivisionError: division by zero"


def test_a_stream_that_is_left_interrupts_its_run(remote: Session) -> None:
    stream = remote.stream("x = 1\nprint('begun', flush=True)\nwhile True: pass")
    assert "begun\n".startswith(str(next(stream)))
    with pytest.raises(isolet.BusyError):
        remote.run("x")
    stream.close()
    until(lambda: is_idle(remote), SECONDS)
    assert remote.eval("x") == 1


def is_idle(session: Session) -> bool:
    try:
        return session.run("0").ok
    except isolet.BusyError:
        return False


def test_a_callback_that_raises_ends_the_run(remote: Session) -> None:
    def refuse(_: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        remote.run("print('x', flush=True)\nwhile True: pass", on_stdout=refuse)
    until(lambda: is_idle(remote), SECONDS)


def test_another_thread_interrupts_a_run(remote: Session) -> None:
    def work(index: int) -> Any:
        if index == 0:
            return remote.run("print('begun', flush=True)\nwhile True: pass", on_stdout=begun)
        assert going.wait(SECONDS)
        return remote.interrupt()

    def begun(_: str) -> None:
        going.set()

    going = threading.Event()
    execution, _ = in_threads(2, work)
    assert isinstance(execution, isolet.Execution)
    assert execution.status == "interrupted"
    assert remote.eval("1") == 1


def test_ctrl_c_interrupts_the_guest(remote: Session) -> None:
    def press() -> None:
        until(lambda: running(remote) == 1, SECONDS)
        os.kill(os.getpid(), signal.SIGINT)

    remote.run("x = 1")
    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(isolet.Interrupted):
        remote.run("while True: pass")
    pressing.join(SECONDS)
    until(lambda: is_idle(remote), SECONDS)
    with pytest.raises(isolet.Interrupted):
        remote.run(
            "print('begun', flush=True)\nwhile True: pass",
            on_stdout=lambda _: os.kill(os.getpid(), signal.SIGINT),
        )
    until(lambda: is_idle(remote), SECONDS)
    assert remote.eval("x") == 1


def running(session: Session) -> int:
    """How many runs are under way on a node."""
    with urllib.request.urlopen(f"{session.address}/v1/node", timeout=SECONDS) as answer:
        return json.load(answer)["running"]


def test_a_session_that_has_ended_says_so(client: Client) -> None:
    session = client.session()
    limits = isolet.Limits(run_time=0.2, grace=0.2)
    other = client.session(limits=limits, checkpoint=False)
    session.close()
    session.close()
    with pytest.raises(isolet.SessionClosedError, match=r"closed.*make a new one"):
        session.run("1")
    stubborn = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    assert not other.run(stubborn).session_alive
    for use in (lambda: other.run("1"), lambda: other.get("x"), lambda: other.files.get("x")):
        with pytest.raises(isolet.SessionClosedError, match="make a new one"):
            use()
    other.close()


def test_a_policy_is_the_ceilings_business(client: Client) -> None:
    with pytest.raises(isolet.ConfigError, match="operator"):
        client.session(mounts={"/data": "/"})
    with pytest.raises(isolet.ConfigError, match="numpy"):
        client.run("1", packages=["numpy"])
    with pytest.raises(isolet.ConfigError, match="64 MiB"):
        client.session(limits=isolet.Limits(memory_bytes=1))
    with pytest.raises(TypeError, match="nothing"):
        client.session(nothing=1)  # type: ignore[call-arg]
    small = isolet.Limits(source_bytes=10)
    with client.session(limits=small) as session, pytest.raises(isolet.LimitError):
        session.run("1 + 1 + 1 + 1")


def test_sessions_belong_to_a_key(tmp_path: Path) -> None:
    with serving(*configured(tmp_path, CONFIG)) as address:
        for key in (None, "no key"):
            with pytest.raises(isolet.ConfigError, match="Bearer KEY"):
                Client(address, key).session()
        with Client(address, KEYS["a"]).session(inputs={"x": 1}) as session:
            assert session.eval("x") == 1


def test_a_full_node_has_the_next_one_take_the_session(tmp_path: Path) -> None:
    with serving("--max-sessions", "1") as one, serving("--max-sessions", "1") as other:
        client = Client([one, other])
        first, second = client.session(), client.session()
        assert (first.address, second.address) == (one, other)
        with pytest.raises(isolet.LimitError, match="full: limit 1"):
            client.session()
        with pytest.raises(isolet.LimitError, match="full: limit 1"):
            client.run("1")
        # Room comes while it waits.
        closing = threading.Timer(0.2, second.close)
        closing.start()
        with client.session(wait=SECONDS) as third:
            assert third.address == other
            assert first.id != third.id != second.id
        closing.join()


def test_a_node_that_is_gone_has_the_next_one_take_the_session() -> None:
    node, gone = started()
    with serving() as other:
        client = Client([gone, other])
        lost = client.session()
        assert lost.address == gone
        node.kill()
        node.wait(SECONDS)
        with pytest.raises(isolet.ServerDiedError, match="make a new one"):
            lost.run("1")
        lost.close()
        with client.session() as session:
            assert (session.address, session.eval("1")) == (other, 1)
        assert client.run("2").value == 2
    with pytest.raises(isolet.ServerDiedError, match="cannot be reached"):
        client.session()


def test_sessions_are_spread_over_all_nodes() -> None:
    with serving() as one, serving() as other, serving() as third:
        client = Client([one, other, third], spread=True)
        sessions = [client.session() for _ in range(6)]
        places = [session.address for session in sessions]
        assert sorted(places) == sorted([one, other, third] * 2)
        assert places[:3] == places[3:]


def test_a_node_of_the_same_place_does_not_know_the_sessions_of_before(tmp_path: Path) -> None:
    place = tmp_path / "socket"
    client = Client(f"unix:{place}")
    node, said = started(listen=f"unix:{place}")
    assert said == str(place)
    old = client.session(inputs={"x": 1})
    assert old.eval("x") == 1
    node.kill()
    node.wait(SECONDS)
    with serving(listen=f"unix:{place}"):
        # The connection to the old one is not used any more.
        new = client.session()
        with pytest.raises(isolet.SessionClosedError, match="started anew"):
            old.run("x")
        assert new.run("x").failure == "NameError: name 'x' is not defined"


def test_what_is_no_address_is_refused() -> None:
    for address in ("", "127.0.0.1:8080", "ftp://x", "unix:", "http://", "http://x:y"):
        with pytest.raises(isolet.ConfigError, match="no address of a node"):
            Client(address)
    with pytest.raises(isolet.StartError, match="no node"):
        Client([]).session()


def test_threads_share_a_client_and_its_connections(client: Client) -> None:
    def work(index: int) -> list[Any]:
        with client.session(inputs={"own": index}) as session:
            return [session.eval("own") for _ in range(20)]

    assert in_threads(16, work) == [[index] * 20 for index in range(16)]


def test_a_process_that_was_forked_has_connections_of_its_own(remote: Session) -> None:
    remote.run("own = 1")
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe()

    def child() -> None:
        its.send([remote.eval("own + 1") for _ in range(20)])

    process = context.Process(target=child)
    process.start()
    assert mine.poll(SECONDS)
    assert mine.recv() == [2] * 20
    process.join(SECONDS)
    assert process.exitcode == 0
    assert remote.eval("own") == 1


def test_a_client_can_be_pickled_and_a_session_cannot(client: Client, remote: Session) -> None:
    assert pickle.loads(pickle.dumps(client)).run("1").value == 1
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(remote)


class Proxy(BaseHTTPRequestHandler):
    """Passes requests to `/nodes/...` on to a node. Answers `/502/...` with that status itself."""

    protocol_version = "HTTP/1.1"
    node = ""

    def answer(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        _, first, path = self.path.split("/", 2)
        if first == "nodes":
            node = HTTPConnection(self.node, timeout=SECONDS)
            node.request(self.command, f"/{path}", sent, dict(self.headers))
            answer = node.getresponse()
            status, data = answer.status, answer.read()
            node.close()
        else:
            status, data = int(first), b"of the proxy"
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def proxying(address: str = "", tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a proxy before a node."""
    handler = type("Handler", (Proxy,), {"node": address.removeprefix("http://")})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
        proxy.daemon_threads = True
        if tls is not None:
            # In the thread of each connection, not in the one that accepts them.
            proxy.socket = tls.wrap_socket(
                proxy.socket, server_side=True, do_handshake_on_connect=False
            )
        serves = threading.Thread(target=proxy.serve_forever)
        serves.start()
        try:
            yield proxy.server_port
        finally:
            proxy.shutdown()
            serves.join(SECONDS)


@pytest.mark.parametrize(
    ("status", "kind"), [(502, isolet.ServerDiedError), (404, isolet.IsoletError)]
)
def test_the_answer_of_a_proxy_without_a_node_is_told(status: int, kind: type) -> None:
    with proxying() as port, pytest.raises(kind, match=f"status {status}.*of the proxy"):
        Client(f"http://127.0.0.1:{port}/{status}").session()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no `openssl`")
def test_a_node_behind_a_proxy_with_tls_has_sessions(
    remote: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=proxy"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key)]
    command += ["-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with proxying(remote.address, tls) as port:
        address = f"https://127.0.0.1:{port}/nodes"
        with pytest.raises(isolet.ServerDiedError, match="CERTIFICATE_VERIFY_FAILED"):
            Client(address).session()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with Client(address) as trusting, trusting.session(tools={"one": lambda: 1}) as session:
            assert session.eval("[2, 'größe']") == [2, "größe"]
            assert session.run("print(3)", on_stdout=print).stdout == "3\n"


def test_an_answer_that_breaks_off_is_the_end_of_the_node() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(SECONDS)

        def break_off() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")

        breaking = threading.Thread(target=break_off)
        breaking.start()
        # It is not run once more elsewhere: the node may have run it.
        with pytest.raises(isolet.ServerDiedError, match="ended, or cannot be reached"):
            Client([f"http://127.0.0.1:{listening.getsockname()[1]}"] * 2).run("1")
        breaking.join(SECONDS)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n[[[[[[[",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xff\xfe\xfd\xfc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nNaN\r\n0\r\n\r\n",
    ],
)
def test_an_answer_that_no_node_gives_is_told_of_without_reading_it_all(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(SECONDS)

        def give() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)
                connection.settimeout(SECONDS)
                # Until the client has gone.
                connection.recv(1)

        giving = threading.Thread(target=give)
        giving.start()
        with pytest.raises(isolet.ProtocolError, match=r"longer than|no JSON"):
            Client([f"http://127.0.0.1:{listening.getsockname()[1]}"]).run("1")
        gc.collect()
        giving.join(SECONDS)
        assert not giving.is_alive()
