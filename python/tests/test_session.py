"""Sessions: variables, files, streams, tools added later, their ends."""

from __future__ import annotations

import copy
import errno
import pathlib
import pickle
import threading
from collections.abc import Callable

import pytest
from conftest import in_threads
from parameter_ids import shown

import isolet


def test_variables_can_be_read_and_changed(session: isolet.Session) -> None:
    session["x"] = {"a": [1, 2]}
    assert session["x"] == {"a": [1, 2]}
    assert session.eval("x['a']") == [1, 2]
    assert "x" in session
    del session["x"]
    assert "x" not in session
    with pytest.raises(KeyError, match="x"):
        session["x"]
    with pytest.raises(KeyError, match="x"):
        del session["x"]
    assert session.get("x") is None
    assert session.get("x", 5) == 5
    assert session.delete("x") is False
    session.set({"p": 1, "q": None})
    assert session["q"] is None
    assert "q" in session
    found = {variable.name: variable for variable in session.variables()}
    assert (found["p"].type, found["p"].repr) == ("int", "1")


def test_a_variable_that_cannot_cross_names_its_path(session: isolet.Session) -> None:
    with pytest.raises(isolet.TransferError, match=r"`x\['f'\]` is a builtin"):
        session["x"] = {"f": print}
    with pytest.raises(isolet.TransferError, match="`not a name` cannot be a variable"):
        session["not a name"] = 1


def test_a_session_starts_with_its_inputs(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server)
    with sandbox.session(inputs={"x": (1, 2)}) as session:
        assert session.eval("x") == [1, 2]
    with pytest.raises(isolet.TransferError, match=r"inputs\['x'\]"):
        sandbox.session(inputs={"x": print})


def test_files_can_be_put_read_listed_and_removed(
    session: isolet.Session, tmp_path: pathlib.Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"\x00\xff")
    session.files.put("a.txt", "größe")
    session.files.put("b.bin", b"123")
    session.files.put(pathlib.PurePosixPath("c.bin"), source)
    assert session.eval("open('a.txt').read()") == "größe"
    assert session.files.get("c.bin") == b"\x00\xff"
    entries = {entry.name: entry for entry in session.files.list()}
    with pytest.raises(FileNotFoundError, match="no such directory"):
        session.files.list("none")
    with pytest.raises(NotADirectoryError):
        session.files.list(next(name for name, entry in entries.items() if not entry.is_dir))
    assert entries["b.bin"].size == 3
    assert not entries["b.bin"].is_dir
    assert session.files.remove("b.bin") is True
    assert session.files.remove("b.bin") is False
    with pytest.raises(FileNotFoundError, match=r"b\.bin"):
        session.files.get("b.bin")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        session.files.get("/nowhere/a")
    session.files.put("new/directory/a.txt", "")
    assert [entry.name for entry in session.files.list("new/directory")] == ["a.txt"]
    with pytest.raises(OSError, match="not empty") as caught:
        session.files.remove("new/directory")
    assert caught.value.errno == errno.ENOTEMPTY
    assert caught.value.filename == "new/directory"
    with pytest.raises(FileNotFoundError, match="nowhere"):
        session.files.list("/nowhere")


def test_what_cannot_be_done_with_a_file_is_the_os_error_that_it_is_here(
    session: isolet.Session,
) -> None:
    session.run("import os\nos.makedirs('d')\nopen('f', 'w').close()\nopen('r', 'w').close()")
    session.run("os.chmod('r', 0o400)\nos.symlink('loop', 'loop')")
    files = session.files
    for expected, attempt in (
        (IsADirectoryError, lambda: files.get("d")),
        (IsADirectoryError, lambda: files.put("d", "")),
        (NotADirectoryError, lambda: files.get("f/a")),
        (NotADirectoryError, lambda: files.list("f")),
        (PermissionError, lambda: files.put("r", "")),
        (OSError, lambda: files.get("loop")),
        (OSError, lambda: files.get("n" * 5000)),
    ):
        with pytest.raises(expected) as caught:
            attempt()
        number = caught.value.errno
        assert number not in (None, errno.EIO)
        assert type(OSError(number, "")) is type(caught.value)
    assert session.eval("1") == 1


def test_a_stream_yields_output_and_then_the_execution(session: isolet.Session) -> None:
    items = list(
        session.stream("print('a')\ndisplay({'text/html': '<b>'}, raw=True)\nn", inputs={"n": 5})
    )
    output, display, execution = items
    assert isinstance(output, isolet.Output)
    assert (output.stream, output.text) == ("stdout", "a\n")
    assert isinstance(display, isolet.Display)
    assert display.data == {"text/html": "<b>"}
    assert isinstance(execution, isolet.Execution)
    assert execution.value == 5


ENDLESS = "while True: print('x' * 1000)"


def test_a_stream_that_is_left_interrupts_its_run(session: isolet.Session) -> None:
    session.run("kept = 1")
    for item in session.stream(ENDLESS):
        assert isinstance(item, isolet.Output)
        break
    assert session.eval("kept") == 1
    with session.stream(ENDLESS) as stream:
        next(stream)
    assert list(stream) == []
    assert session.eval("kept") == 1


def test_a_stream_that_raises_ends(session: isolet.Session) -> None:
    with pytest.raises(isolet.TransferError):
        session.stream("'\ud800'")
    stream = session.stream("1/0")
    (execution,) = stream
    assert isinstance(execution, isolet.Execution)
    assert execution.status == "raised"


def test_tools_can_be_added_and_replaced(session: isolet.Session) -> None:
    session.register(isolet.tool(lambda: 1, name="one"))
    assert session.eval("one()") == 1
    session.register(isolet.tool(lambda: 2, name="one"))
    assert session.eval("one()") == 2


def test_one_run_at_a_time(session: isolet.Session) -> None:
    entered, leave = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        leave.wait(30)

    session.register(wait)

    def work(index: int) -> object:
        if index == 0:
            return session.run("v = 5; wait(); v").value
        assert entered.wait(30)
        try:
            assert session["v"] == 5
            with pytest.raises(isolet.BusyError):
                session.run("1")
            with pytest.raises(isolet.BusyError):
                session.set({"v": 6})
            return [variable.name for variable in session.variables()]
        finally:
            leave.set()

    first, second = in_threads(2, work)
    assert first == 5
    assert isinstance(second, list)
    assert "v" in second


def test_another_thread_can_interrupt_a_run(session: isolet.Session) -> None:
    going = threading.Event()
    session.register(isolet.tool(going.set, name="going"))

    def work(index: int) -> object:
        if index == 0:
            return session.run("kept = 1\ngoing()\nwhile True: pass")
        assert going.wait(30)
        session.interrupt()
        return None

    execution, _ = in_threads(2, work)
    assert isinstance(execution, isolet.Execution)
    assert execution.status == "interrupted"
    assert session.eval("kept") == 1
    session.interrupt()
    assert session.eval("1") == 1


def test_a_fresh_interpreter_has_no_variables(session: isolet.Session) -> None:
    session["x"] = 1
    session.reset()
    assert "x" not in session
    assert session.alive


def test_a_closed_session_is_closed(server: isolet.Server) -> None:
    session = isolet.Sandbox(server=server).session()
    assert session.eval("1") == 1
    session.close()
    session.close()
    assert not session.alive
    uses: list[Callable[[], object]] = [
        lambda: session.run("1"),
        lambda: list(session.stream("1")),
        lambda: session.get("x"),
        lambda: session.files.list(),
        session.interrupt,
        session.reset,
    ]
    for use in uses:
        with pytest.raises(isolet.SessionClosedError, match=r"was closed .*sandbox\.session"):
            use()
    assert not session.alive


def test_a_session_that_was_closed_before_it_was_open_is_closed(server: isolet.Server) -> None:
    session = isolet.Sandbox(server=server).session()
    session.close(wait=False)
    with pytest.raises(isolet.SessionClosedError):
        session.reset()


def test_sandboxes_sessions_and_servers_are_copied_as_themselves(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server)
    session = sandbox.session()
    handles = [server, sandbox, session, isolet.aio.Sandbox(), isolet.aio.Server()]
    for handle in handles:
        assert copy.copy(handle) is handle
        assert copy.deepcopy({"of": [handle]})["of"][0] is handle
        name = type(handle).__name__
        with pytest.raises(TypeError, match=rf"a `{name}` cannot be pickled.* make another one"):
            pickle.dumps(handle)
    assert session.eval("40 + 2") == 42


def test_closing_a_session_ends_its_run(server: isolet.Server) -> None:
    going = threading.Event()
    tool = isolet.tool(going.set, name="going")
    session = isolet.Sandbox(server=server, tools=[tool]).session()

    def work(index: int) -> object:
        if index == 0:
            return session.run("going()\nwhile True: pass")
        assert going.wait(30)
        session.close()
        return None

    found, _ = in_threads(2, work)
    if isinstance(found, isolet.Execution):
        assert found.status in ("interrupted", "died")
    else:
        assert isinstance(found, isolet.SessionClosedError)


def test_the_isolation_is_told(session: isolet.Session) -> None:
    isolation = session.isolation
    assert isolation.kind in ("process", "thread")
    assert "seccomp" in isolation.layers


@pytest.mark.parametrize(
    ("policy", "error", "text"),
    [
        ({"limits": isolet.Limits(memory_bytes=1)}, isolet.ConfigError, "memory"),
        ({"mounts": {"relative": "/usr/lib"}}, isolet.ConfigError, "relative"),
        ({"mounts": {"/data": "/nowhere"}}, isolet.IsoletError, "/nowhere"),
        ({"allow_net": ["http://"]}, isolet.ConfigError, "http://"),
        ({"require": ["none"]}, isolet.ConfigError, "none"),
        ({"packages": ["no such package"]}, isolet.IsoletError, "no such package"),
    ],
    ids=shown,
)
def test_what_the_server_says_about_a_policy_is_raised_by_the_first_use(
    server: isolet.Server, policy: isolet.Policy, error: type[Exception], text: str
) -> None:
    sandbox = isolet.Sandbox(server=server, **policy)
    session = sandbox.session()
    for use in (lambda: session.run("1"), lambda: session.isolation, lambda: sandbox.prewarm(1)):
        with pytest.raises(error, match=text):
            use()
    assert not session.alive
    with pytest.raises(error, match=text):
        sandbox.run("1")


@pytest.mark.parametrize(
    ("policy", "error", "text"),
    [
        ({"no_such_key": 1}, TypeError, "no_such_key"),
        ({"allow_net": "example.com"}, isolet.ConfigError, r"`allow_net=\['example.com'\]`"),
        ({"limits": {"memory": 1}}, isolet.ConfigError, "Limits"),
        ({"env": {"A": "\ud800"}}, isolet.TransferError, r"`policy\['env'\]\['A'\]`"),
        ({"tools": len}, isolet.ConfigError, r"`\[len\]`"),
        ({"tools": [shown, shown]}, isolet.ConfigError, "two tools"),
        ({"tools": [lambda: 1]}, isolet.ConfigError, "lambda"),
        ({"tools": [5]}, isolet.ConfigError, "5"),
    ],
    ids=shown,
)
def test_what_is_wrong_with_a_policy_here_is_raised_at_once(
    policy: isolet.Policy, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        isolet.Sandbox(**policy)


def test_mounts_and_variables_are_what_the_policy_says(
    server: isolet.Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "read").mkdir()
    (tmp_path / "read" / "a").write_text("A")
    (tmp_path / "write").mkdir()
    monkeypatch.chdir(tmp_path)
    sandbox = isolet.Sandbox(
        server=server,
        mounts={"/r": "read", "/w": isolet.Mount("write", mode="rw", quota_bytes=1000)},
        env={"NAME": "value"},
    )
    with sandbox.session() as session:
        assert session.eval("import os; os.environ['NAME']") == "value"
        assert session.eval("open('/r/a').read()") == "A"
        assert not session.run("open('/r/b', 'w')").ok
        session.eval("open('/w/b', 'w').write('B')")
        assert not session.run("open('/w/c', 'wb', 0).write(b'C' * 2000)").ok
    assert (tmp_path / "write" / "b").read_text() == "B"


def test_accesses_are_told(server: isolet.Server, tmp_path: pathlib.Path) -> None:
    events: list[isolet.AuditEvent] = []

    def note(event: isolet.AuditEvent) -> None:
        events.append(event)
        raise RuntimeError("the log of the program")

    def ping() -> str:
        return "pong"

    sandbox = isolet.Sandbox(server=server, mounts={"/d": tmp_path}, tools=[ping], on_audit=note)
    with sandbox.session() as session:
        assert session.eval("ping()") == "pong"
        session.run("import urllib.request as u\nu.urlopen('http://example.com/')")
        session.run("1")
        kinds = {(event["access"], event["allowed"]) for event in events}
        assert ("tool", True) in kinds
        assert ("network", False) in kinds
        assert {event["session"] for event in events} == {session.id}


def test_ready_interpreters_are_made_ahead(server: isolet.Server) -> None:
    sandbox = isolet.Sandbox(server=server)
    sandbox.prewarm(1)
    assert sandbox.run("1").value == 1
