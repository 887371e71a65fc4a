"""The server process: found, started, of another version, killed, closed, and what is left."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest
from conftest import in_threads, until

import isolet
from isolet._find import find_binary

FAKE = pathlib.Path(__file__).with_name("fake_server.py")


def fake(kind: str) -> isolet.Server:
    return isolet.Server(FAKE, env={**os.environ, "FAKE": kind})


@pytest.mark.parametrize(
    ("kind", "error", "texts"),
    [
        ("old", isolet.ProtocolError, ["fake_server.py", "0.0.9", "version 0", "version 1"]),
        ("refuses", isolet.ProtocolError, ["version 1", "version 2"]),
        ("exits", isolet.StartError, ["fake_server.py", "exit status 3"]),
        ("text", isolet.ProtocolError, ["Hello, this is"]),
        ("no-marshal", isolet.ProtocolError, ["????"]),
        ("no-list", isolet.ProtocolError, ["{'a': 1}"]),
        ("unknown", isolet.ProtocolError, ["`sing`"]),
        ("fatal", isolet.ProtocolError, ["a message cannot be read"]),
        ("half", isolet.ServerDiedError, ["exit status 0"]),
    ],
)
def test_a_server_that_is_none_is_told_of(
    kind: str, error: type[isolet.IsoletError], texts: list[str]
) -> None:
    with fake(kind) as server:
        sandbox = isolet.Sandbox(server=server)
        session = sandbox.session()
        for _ in range(2):
            with pytest.raises(error) as caught:
                session.run("1")
            for text in texts:
                assert text in str(caught.value)
        assert not session.alive


@pytest.mark.skipif(sys.version_info < (3, 13), reason="marshal cannot refuse code before")
def test_code_objects_are_not_read() -> None:
    with fake("code") as server, pytest.raises(isolet.ProtocolError):
        isolet.Sandbox(server=server).session().run("1")


def test_a_server_that_hangs_is_killed_when_it_is_closed() -> None:
    server = fake("deaf")
    session = isolet.Sandbox(server=server).session()
    assert session.alive
    pid = server.pid
    server.close()
    assert server.pid is None
    assert pid is not None
    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def elsewhere(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This Python's own directories are elsewhere, in which no program is installed."""
    monkeypatch.delenv("ISOLET_BIN", raising=False)
    monkeypatch.setattr("sysconfig.get_path", lambda *_args, **_kwargs: str(tmp_path / "scripts"))
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))


@pytest.mark.usefixtures("elsewhere")
def test_a_program_that_is_missing_is_told_of(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(isolet.StartError, match=r"`binary` names `.*nothing`"):
        isolet.Sandbox(server=isolet.Server(tmp_path / "nothing")).session()
    monkeypatch.setenv("ISOLET_BIN", str(tmp_path / "other"))
    with pytest.raises(isolet.StartError, match=r"\$ISOLET_BIN` names `.*other`"):
        find_binary()
    monkeypatch.delenv("ISOLET_BIN")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(isolet.StartError) as caught:
        find_binary()
    for text in (str(tmp_path / "isolet"), os.path.dirname(sys.executable), "ISOLET_BIN"):
        assert text in str(caught.value)


@pytest.mark.usefixtures("elsewhere")
def test_a_program_is_found_on_the_path_and_scripts_are_passed_over(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in (("first", b"#!/bin/sh\n"), ("second", b"\x7fELF")):
        (tmp_path / name).mkdir()
        program = tmp_path / name / "isolet"
        program.write_bytes(content)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}{os.pathsep}{tmp_path / 'second'}")
    assert find_binary() == str(tmp_path / "second" / "isolet")


def test_a_program_that_cannot_be_executed_is_told_of(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "isolet"
    program.write_bytes(b"\0")
    program.chmod(0o755)
    with pytest.raises(isolet.StartError, match="cannot be started"):
        isolet.Sandbox(server=isolet.Server(program)).session()


def test_every_waiter_learns_that_the_server_was_killed(fresh: isolet.Server) -> None:
    going = threading.Semaphore(0)
    sandbox = isolet.Sandbox(server=fresh, tools=[isolet.tool(going.release, name="going")])

    def work(index: int) -> object:
        return sandbox.session().run("going()\nwhile True: pass")

    def kill(index: int) -> object:
        if index < 4:
            return work(index)
        for _ in range(4):
            assert going.acquire(timeout=30)
        assert fresh.pid is not None
        os.kill(fresh.pid, signal.SIGKILL)
        return None

    *found, _ = in_threads(5, kill)
    for error in found:
        assert isinstance(error, isolet.ServerDiedError)
        assert "signal 9 (SIGKILL)" in str(error)
    assert sandbox.run("40 + 2").value == 42
    assert fresh.pid is not None


def test_a_server_that_died_while_nobody_looked_is_replaced(fresh: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=fresh)
    session = sandbox.session()
    assert session.eval("1") == 1
    first = fresh.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    # Until it has ended, without taking note of it.
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert sandbox.session().eval("2") == 2
    assert fresh.pid != first
    with pytest.raises(isolet.ServerDiedError):
        session.run("1")
    session.close()


def test_a_closed_server_is_closed() -> None:
    server = isolet.Server()
    session = isolet.Sandbox(server=server).session()
    session.run("1")
    pid = server.pid
    assert pid is not None
    server.close()
    server.close()
    assert not is_alive(pid)
    assert not session.alive
    for use in (lambda: session.run("1"), isolet.Sandbox(server=server).session):
        with pytest.raises(isolet.SessionClosedError, match="the server was closed"):
            use()


def test_closing_a_server_ends_the_runs_of_other_threads() -> None:
    server = isolet.Server()
    going = threading.Event()
    tool = isolet.tool(going.set, name="going")

    def work(index: int) -> object:
        if index == 0:
            return isolet.run("going()\nwhile True: pass", server=server, tools=[tool])
        assert going.wait(30)
        server.close()
        return None

    found, _ = in_threads(2, work)
    assert isinstance(found, (isolet.SessionClosedError, isolet.Execution))


def test_a_server_outlives_the_thread_that_has_started_it(fresh: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=fresh)
    (session,) = in_threads(1, lambda _: sandbox.session())
    assert isinstance(session, isolet.Session)
    pid = fresh.pid
    assert session.eval("40 + 2") == 42
    assert fresh.pid == pid


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        # A thread, or the process, may end meanwhile.
        with contextlib.suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def test_a_thousand_dropped_sessions_leave_nothing(fresh: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=fresh)
    sandbox.run("1")
    assert fresh.pid is not None
    descriptors = len(os.listdir("/proc/self/fd"))
    threads = threading.active_count()
    until(lambda: len(list(workers(fresh))) <= 2)
    before = len(list(workers(fresh)))
    for _ in range(1000):
        sandbox.session()
    assert sandbox.run("1").value == 1
    # What workers are copied from, and two spare copies.
    until(lambda: len(list(workers(fresh))) <= before + 3, 50)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert threading.active_count() <= threads


def workers(server: isolet.Server) -> list[int]:
    assert server.pid is not None
    found = children(server.pid)
    for pid in list(found):
        with contextlib.suppress(OSError):
            found += children(pid)
    return found


def test_closing_leaves_no_descriptor_thread_or_process() -> None:
    descriptors = sorted(os.listdir("/proc/self/fd"))
    threads = threading.active_count()

    async def double(x: int) -> int:
        return 2 * x

    def half(x: int) -> int:
        return x // 2

    def use() -> list[int]:
        with isolet.Server() as server:
            sandbox = isolet.Sandbox(server=server, tools=[half])
            sandbox.prewarm(1)
            with sandbox.session() as session:
                assert session.eval("half.map([2, 4])") == [1, 2]
                found = [server.pid or 0, *workers(server)]
        return found

    found = use()
    until(lambda: threading.active_count() <= threads)
    until(lambda: not any(map(is_alive, found)))
    assert sorted(os.listdir("/proc/self/fd")) == descriptors


def run_python(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a program of its own."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def test_the_server_ends_with_the_program() -> None:
    done = run_python(
        "import isolet\n"
        "session = isolet.Sandbox().session()\n"
        "print(session.eval('40 + 2'), isolet._run._bare._server.pid)"
    )
    assert done.stderr == ""
    value, pid = done.stdout.split()
    assert value == "42"
    assert not is_alive(int(pid))


def test_the_server_ends_when_the_program_is_killed() -> None:
    done = run_python(
        "import isolet, os, sys\n"
        "session = isolet.Sandbox().session()\n"
        "print(session.eval('40 + 2'), isolet._run._bare._server.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    assert done.returncode == -9
    pid = int(done.stdout.split()[1])
    until(lambda: not is_alive(pid))


def test_a_program_may_have_no_standard_streams() -> None:
    done = run_python(
        "import os\n"
        "w = os.dup(1)\n"
        "for fd in (0, 1, 2): os.close(fd)\n"
        "import isolet\n"
        "os.write(w, str(isolet.run('40 + 2').value).encode())"
    )
    assert done.stdout == "42"


def test_the_command_can_be_run_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "isolet", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("isolet ")


FORK = """
import isolet, os, sys, threading

sandbox = isolet.Sandbox()
session = sandbox.session(inputs={"x": 1})
assert session.eval("x") == 1
parent = isolet._run._bare._server.pid
for _ in range(2):
    child = os.fork()
    if child == 0:
        try:
            try:
                session.run("1")
            except isolet.SessionClosedError as error:
                assert str(os.getppid()) in str(error), error
            else:
                raise AssertionError("the child has used the parent's session")
            session.close()
            assert sandbox.run("40 + 2").value == 42
            assert isolet.run("40 + 2").value == 42
            assert isolet._run._bare._server.pid != parent
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        sys.exit(0)
    assert session.eval("x") == 1
    assert os.waitpid(child, 0)[1] == 0
    assert session.eval("x") == 1
assert isolet._run._bare._server.pid == parent
print("done")
"""


def test_a_fork_has_a_server_of_its_own() -> None:
    done = run_python(FORK)
    assert done.stderr == ""
    assert done.stdout == "done\n"


FORK_WHILE_BUSY = """
import isolet, os, threading, warnings

# CPython warns of every fork beside a thread.
warnings.filterwarnings("ignore", ".* is multi-threaded, use of fork", DeprecationWarning)
going = threading.Event()
tool = isolet.tool(going.set, name="going")

def work():
    isolet.run("going()\\nwhile True: pass", tools=[tool], timeout=5)

threading.Thread(target=work, daemon=True).start()
going.wait(30)
child = os.fork()
if child == 0:
    os._exit(0 if isolet.run("40 + 2").value == 42 else 1)
print(os.waitpid(child, 0)[1], isolet.run("40 + 2").value)
"""


def test_a_program_may_fork_while_another_thread_waits() -> None:
    done = run_python(FORK_WHILE_BUSY)
    assert done.stdout == "0 42\n", done.stderr
