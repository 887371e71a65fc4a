"""What a stranger's notebook and a stranger on the loopback cannot do."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SECONDS, Install, Kernel

ATTEMPTS = """
import os, socket, subprocess, urllib.request

def attempt(what):
    try:
        return what()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

found = [
    attempt(lambda: open(FILE).read()),
    attempt(lambda: os.listdir(DIRECTORY)),
    attempt(lambda: urllib.request.urlopen(f"http://127.0.0.1:{PORT}/").read()),
    attempt(lambda: socket.create_connection(("127.0.0.1", PORT)).recv(99)),
    attempt(lambda: subprocess.run(f"cat {FILE}; curl http://127.0.0.1:{PORT}", shell=True,
                                   capture_output=True, text=True).stdout),
    dict(os.environ),
]
print(found)
"""


class Listening:
    """A server that counts connections."""

    def __init__(self) -> None:
        self.connections = 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.connections += 1
            with connection, connection.makefile("rb") as request:
                # A socket that is closed with unread bytes resets what it has sent.
                for line in request:
                    if line == b"\r\n":
                        break
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ncanary")


@pytest.fixture
def listening() -> Iterator[Listening]:
    listening = Listening()
    yield listening
    listening.server.close()


def test_a_notebook_reads_no_file_and_reaches_no_server(
    kernel: Kernel, listening: Listening, tmp_path: Path
) -> None:
    secret = tmp_path / "canary.txt"
    secret.write_text("canary")
    names = f"FILE, DIRECTORY, PORT = {str(secret)!r}, {str(tmp_path)!r}, {listening.port}"
    answer, published = kernel.run(f"{names}\n{ATTEMPTS}")
    assert answer["status"] == "ok"
    told = "".join(content["text"] for _, content in published)
    assert "FileNotFoundError" in told
    assert "PermissionError" in told
    assert "'canary" not in told
    assert "JUPYTER" not in told
    assert listening.connections == 0
    # The server counts what there is to count.
    socket.create_connection(("127.0.0.1", listening.port)).close()
    while listening.connections == 0:
        pass


def test_what_the_installer_allows_is_allowed(
    install: Install, listening: Listening, tmp_path: Path
) -> None:
    (tmp_path / "data.txt").write_text("allowed")
    name = install(
        f"--mount={tmp_path}:/data", f"--allow-net=127.0.0.1:{listening.port}", "--env=A=b"
    )
    kernel = Kernel(name)
    try:
        assert kernel.value("import os; open('/data/data.txt').read(), os.environ['A']") == (
            "('allowed', 'b')"
        )
        code = f"__import__('urllib.request').request.urlopen('http://127.0.0.1:{listening.port}')"
        assert kernel.value(f"{code}.read()") == "b'canary'"
        assert listening.connections >= 1
        banner = kernel.answer(kernel.client.kernel_info())["banner"]
        assert "/data (read only)" in banner
    finally:
        kernel.stop()


SCRIPTS = [
    ("{'text/html': '<script>x()</script><img src=x onerror=x()>'}", "text/html"),
    ("{'application/javascript': 'x()'}", None),
    ("{'application/vnd.bokehjs_exec.v0+json': {'id': 'x'}}", None),
    ("{'text/html': '<img src=\"http://127.0.0.1/\">'}", "text/html"),
]


@pytest.mark.parametrize(("formats", "left"), SCRIPTS)
@pytest.mark.parametrize("options", ["", ", display_id='a'"])
def test_output_runs_nothing_in_the_page(
    kernel: Kernel, formats: str, left: str | None, options: str
) -> None:
    _, published = kernel.run(f"display({formats}, raw=True{options});")
    if left is None:
        assert [kind for kind, _ in published] == ["stream"]
        assert "--trust-output" in published[0][1]["text"]
    else:
        page = published[0][1]["data"][left]
        assert page.startswith('<iframe sandbox="" ')
        # Whatever it has is within the attribute.
        assert page.count("<") == 2


def test_widgets_are_left_out_unless_output_is_trusted(kernel: Kernel) -> None:
    message = kernel.client.session.msg(
        "comm_open", {"comm_id": "a", "target_name": "jupyter.widget", "data": {}}
    )
    kernel.client.shell_channel.send(message)
    while True:
        published = kernel.client.get_iopub_msg(timeout=SECONDS)
        if published["msg_type"] == "comm_close":
            break
    assert published["content"]["comm_id"] == "a"


def test_trusted_output_stays_as_it_is(install: Install) -> None:
    kernel = Kernel(install("--trust-output"))
    try:
        for formats, _ in SCRIPTS:
            _, published = kernel.run(f"display({formats}, raw=True)")
            assert published == [("display_data", {"data": eval(formats), "metadata": {}})]
    finally:
        kernel.stop()


def test_who_does_not_know_the_key_is_not_heard(kernel: Kernel) -> None:
    client = kernel.manager.client()
    key = client.session.key
    client.start_channels()
    try:
        for wrong in (b"another key", b""):
            client.session.key = wrong
            client.execute("stranger = 1")
        client.session.key = key
        # A message that the kernel has had before.
        code = "times = globals().get('times', 0) + 1"
        frames = client.session.serialize(
            client.session.msg("execute_request", {"code": code}),
        )
        for _ in range(2):
            client.shell_channel.socket.send_multipart(frames)
        asked = client.kernel_info()
        while client.get_shell_msg(timeout=SECONDS)["parent_header"]["msg_id"] != asked:
            pass
        assert kernel.value("'stranger' in globals(), times") == "(False, 1)"
    finally:
        client.stop_channels()


def connected(kernel: Kernel, socket_name: str, kind: bytes) -> socket.socket:
    """A connection that has greeted."""
    info = json.loads(Path(kernel.manager.connection_file).read_text())
    address = ("127.0.0.1", info[f"{socket_name}_port"])
    client = socket.create_connection(address, timeout=SECONDS)
    client.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48))
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    client.sendall(bytes([4, len(ready)]) + ready)
    return client


def is_closed(client: socket.socket) -> bool:
    """Whether the kernel closes a connection."""
    with contextlib.suppress(ConnectionResetError):
        while client.recv(4096):
            pass
    client.close()
    return True


def test_bytes_of_a_stranger_end_his_connection_only(kernel: Kernel) -> None:
    for sent in (
        b"\x02" + struct.pack(">Q", 1 << 62),  # a frame that is longer than memory
        b"\x01\x00" * 2000,  # a message of more frames than there are parts
        b"\x04\xff",  # a command that is cut
        b"\x00\x01a",  # a message without a signature
    ):
        client = connected(kernel, "shell", b"DEALER")
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert is_closed(client)
    other = connected(kernel, "shell", b"SUB")
    assert is_closed(other)
    info = json.loads(Path(kernel.manager.connection_file).read_text())
    browser = socket.create_connection(("127.0.0.1", info["shell_port"]), timeout=SECONDS)
    browser.sendall(b"POST / HTTP/1.1\r\nHost: a\r\n\r\n" + bytes(64))
    assert is_closed(browser)
    assert kernel.value("1 + 1") == "2"


def test_a_subscriber_that_reads_nothing_takes_bounded_memory_and_stops_nobody(
    fresh: Kernel,
) -> None:
    stuck = connected(fresh, "iopub", b"SUB")
    stuck.sendall(b"\x00\x01\x01")
    answer, published = fresh.run("for _ in range(120): print('x' * 1_000_000)")
    assert answer["status"] == "ok"
    assert sum(len(content["text"]) for _, content in published) == 120 * 1_000_001
    status = Path(f"/proc/{fresh.manager.provisioner.process.pid}/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0])
    assert peak < 400_000, f"{peak} KiB"
    stuck.close()
