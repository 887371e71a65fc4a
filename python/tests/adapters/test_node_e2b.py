"""`isolet serve --listen` speaks E2B's protocol with its own clients for Python."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from e2b_nodes import node

e2b = pytest.importorskip("e2b_code_interpreter")

from e2b import SandboxQuery  # noqa: E402
from e2b.exceptions import (  # noqa: E402
    AuthenticationException,
    FileNotFoundException,
    InvalidArgumentException,
    NotFoundException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    ServiceBusyException,
    TimeoutException,
)
from e2b_code_interpreter import AsyncSandbox, Sandbox  # noqa: E402

SECONDS = 60
"""How long anything that is waited for may take."""

PUBLIC_NAMES = "sorted(n for n in dir() if n[:1] != '_')"


def wheel(directory: Path, name: str) -> None:
    """Writes a wheel of a package that has one function."""
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"def name():\n    return {name!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("node")
    for name in ("greeting", "farewell"):
        wheel(tmp_path, name)
    config = f"""
        [store]
        directory = "{tmp_path}/store"
        [policy]
        wheels = ["{tmp_path}"]
        offline = true
        [ceiling]
        packages = ["greeting"]
    """
    with node(tmp_path, config) as address:
        yield address


@pytest.fixture
def sandbox(address) -> Iterator[Sandbox]:
    with Sandbox.create() as sandbox:
        yield sandbox


def until(is_true: Callable[[], bool]) -> None:
    """Waits until something is true."""
    end = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < end, "it is not true"
        time.sleep(0.05)


def test_a_cell_has_its_value_output_and_number_and_leaves_its_variables(sandbox):
    assert sandbox.run_code("x = 1").results == []
    execution = sandbox.run_code("import sys\nprint('a')\nprint('b', file=sys.stderr)\nx + 1")
    assert (execution.text, execution.error, execution.execution_count) == ("2", None, 2)
    assert ("".join(execution.logs.stdout), "".join(execution.logs.stderr)) == ("a\n", "b\n")
    assert sandbox.run_code("None").results == []
    assert sandbox.run_code("await __import__('asyncio').sleep(0, 3)").text == "3"
    for code, text in (("'it\\'s'", "it's"), ("''", ""), ("['a']", "['a']"), ("b'a'", "b'a'")):
        assert sandbox.run_code(code).text == text
    for code, text in (("display('a')", "a"), ("display(['a'])", "['a']")):
        assert sandbox.run_code(code).results[0].text == text


def test_output_comes_while_the_cell_runs(sandbox):
    messages, failures, has_come = [], [], threading.Event()

    def told(message) -> None:
        messages.append(message)
        has_come.set()

    def run() -> None:
        try:
            sandbox.run_code("print('begun', flush=True)\nwhile True: pass", on_stdout=told)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert has_come.wait(SECONDS), "nothing was told while the cell ran"
    finally:
        sandbox.kill()
        thread.join(SECONDS)
    assert not thread.is_alive()
    # As E2B's clients say that somebody has killed the sandbox meanwhile.
    (failure,) = failures
    assert isinstance(failure, TimeoutException)
    assert "was killed while" in str(failure)
    assert "begun\n".startswith(messages[0].line)
    assert messages[0].error is False
    assert messages[0].timestamp > 10**18


def test_an_exception_has_name_value_and_traceback(sandbox):
    seen = []
    execution = sandbox.run_code("print('a')\n1 / 0", on_error=seen.append)
    error = execution.error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")
    assert "1 / 0" in error.traceback
    assert seen == [error]
    assert "".join(execution.logs.stdout) == "a\n"
    assert sandbox.run_code("raise SystemExit(3)").error.name == "SystemExit"
    assert sandbox.run_code("def").error.name == "SyntaxError"


def test_displays_and_the_value_are_results_with_their_formats(sandbox):
    execution = sandbox.run_code(
        "from IPython.display import HTML, JSON, display\n"
        "class P:\n"
        "  def _repr_png_(self): return b'png'\n"
        "  def _repr_mimebundle_(self, **_): return {'a/b': 'c'}\n"
        "  def __repr__(self): return 'P'\n"
        "display(HTML('<b>'))\ndisplay(JSON({'a': [1]}))\nP()"
    )
    html, json, main = execution.results
    assert (html.html, html.is_main_result) == ("<b>", False)
    assert json.json == {"a": [1]}
    assert main.is_main_result
    assert execution.text == "P"
    assert base64.b64decode(main.png) == b"png"
    assert main.extra == {"a/b": "c"}


def test_environment_variables_are_of_the_sandbox_or_of_one_run(address):
    code = "import os; os.environ.get('A'), os.environ.get('B')"
    with Sandbox.create(envs={"A": "a"}) as sandbox:
        assert sandbox.run_code(code, envs={"A": "run", "B": "b"}).text == "('run', 'b')"
        assert sandbox.run_code(code).text == "('a', None)"
        assert sandbox.run_code(PUBLIC_NAMES).text == "['In', 'Out', 'os']"


def test_contexts_keep_apart_when_the_interpreter_ends(sandbox):
    other = sandbox.create_code_context(cwd="/tmp")
    sandbox.run_code("x = 'first'")
    sandbox.run_code("x = 'other'; import os", context=other)
    # Perhaps from a moment in which the first context had its turn, or neither.
    sandbox.run_code("import os; os._exit(1)", context=other)
    assert sandbox.run_code("globals().get('x')").text in ("first", None)
    assert sandbox.run_code("globals().get('x')", context=other).text in ("other", None)
    sandbox.run_code("x = 'again'", context=other)
    assert sandbox.run_code("globals().get('x')").text in ("first", None)
    assert sandbox.run_code("x", context=other).text == "again"


def test_contexts_have_variables_of_their_own_and_the_same_files(sandbox):
    sandbox.run_code("x = 1; open('f', 'w').write('text')\ndef get(): return x")
    context = sandbox.create_code_context(cwd="/tmp")
    code = "import os; 'x' in globals(), os.getcwd(), open('/home/user/f').read()"
    assert sandbox.run_code(code, context=context).text == "(False, '/tmp', 'text')"
    sandbox.run_code("x = 2", context=context)
    execution = sandbox.run_code("import os; get(), os.getcwd()")
    assert (execution.text, execution.execution_count) == ("(1, '/home/user')", 2)
    assert sandbox.run_code("x", context=context).text == "2"
    sandbox.restart_code_context(context)
    execution = sandbox.run_code("x", context=context)
    assert (execution.error.name, execution.execution_count) == ("NameError", 1)
    assert [each.id for each in sandbox.list_code_contexts()] == ["default", context.id]
    sandbox.remove_code_context(context.id)
    with pytest.raises(NotFoundException):
        sandbox.run_code("1", context=context)
    assert sandbox.run_code("x").text == "1"
    context = sandbox.create_code_context(cwd="/root")
    assert sandbox.run_code("import os; os.getcwd()", context=context).text == "/root"
    with pytest.raises(SandboxException, match="/none"):
        sandbox.create_code_context(cwd="/none")
    with pytest.raises(SandboxException, match="`r`"):
        sandbox.run_code("1", language="r")


def test_files_are_written_read_listed_moved_and_removed(sandbox):
    files = sandbox.files
    assert files.write("data/ä.txt", "ä").path == "/home/user/data/ä.txt"
    written = files.write_files(
        [{"path": "/home/user/b", "data": b"\xff"}, {"path": "sub/c", "data": "c"}]
    )
    assert [each.path for each in written] == ["/home/user/b", "/home/user/sub/c"]
    assert sandbox.run_code("open('data/ä.txt', encoding='utf-8').read()").text == "ä"
    assert files.read("data/ä.txt") == "ä"
    assert files.read("b", format="bytes") == bytearray(b"\xff")
    files.write("b", io.BytesIO(b"streamed"))
    assert b"".join(files.read("b", format="stream")) == b"streamed"
    files.write("z", "compressed " * 1000, gzip=True)
    assert files.read("z") == "compressed " * 1000
    sandbox.run_code("import os; os.symlink('b', 'link')")
    names = {entry.name: (entry.type.value, entry.size) for entry in files.list(".", depth=2)}
    assert names["data"][0] == "dir"
    assert names["ä.txt"] == ("file", 2)
    info = files.get_info("b")
    assert (info.path, info.size, info.permissions[0]) == ("/home/user/b", 8, "-")
    assert abs(info.modified_time.timestamp() - time.time()) < 86_400
    assert files.get_info("link").symlink_target == "b"
    assert files.rename("b", "new/d").path == "/home/user/new/d"
    assert (files.make_dir("e"), files.make_dir("e")) == (True, False)
    files.remove("data")
    assert (files.exists("data"), files.exists("e")) == (False, True)
    for missing in (files.read, files.list, files.get_info, files.remove):
        with pytest.raises(FileNotFoundException):
            missing("data")
    with pytest.raises(InvalidArgumentException):
        files.list("z")
    assert sandbox.run_code(PUBLIC_NAMES).text == "['In', 'Out', 'os']"


def test_what_a_sandbox_does_not_have_says_so(sandbox):
    with pytest.raises(SandboxException, match="watch"):
        sandbox.files.watch_dir(".")
    with pytest.raises(SandboxException, match="volumeMounts"):
        Sandbox.create(volume_mounts={"/a": "volume"})


def test_pip_lines_load_what_the_ceiling_names_and_nothing_else(sandbox):
    execution = sandbox.run_code("!pip install -q greeting\nimport greeting\ngreeting.name()")
    assert execution.text == "greeting"
    assert execution.logs.stdout[0] == "Successfully installed greeting-1.0\n"
    again = sandbox.run_code("%pip install greeting")
    assert (again.error, again.logs.stdout[0]) == (
        None,
        "Requirement already satisfied: greeting\n",
    )
    refused = sandbox.run_code("!pip install farewell\nprint('not run')")
    assert (refused.error.name, refused.logs.stdout) == ("PackageError", [])
    assert "farewell" in refused.error.value
    assert sandbox.run_code("import farewell").error.name == "ModuleNotFoundError"
    refused = sandbox.run_code("!pip install greeting && ls")
    assert "no shell" in refused.error.value
    error = sandbox.run_code("\n!pip install greeting\n\n1 / 0").error
    assert "line 4" in error.traceback


def test_a_run_that_the_client_gives_up_ends_and_the_next_one_waits_for_that(sandbox):
    sandbox.run_code("x = 1")
    with pytest.raises(TimeoutException):
        sandbox.run_code("while True: pass", timeout=0.5)
    assert sandbox.run_code("x").text == "1"


def test_cells_of_one_sandbox_take_turns(sandbox):
    sandbox.run_code("turns = []")
    code = "import time\nturns.append('in')\ntime.sleep(0.01)\nturns.append('out')"
    threads = [threading.Thread(target=sandbox.run_code, args=(code,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sandbox.run_code("turns == ['in', 'out'] * 8").text == "True"


def test_a_sandbox_that_is_gone_is_told_as_e2b_does(address):
    sandbox = Sandbox.create()
    assert sandbox.is_running()
    assert sandbox.kill()
    assert not sandbox.kill()
    assert not sandbox.is_running()
    with pytest.raises(TimeoutException, match="it was closed"):
        sandbox.run_code("1")
    with pytest.raises(SandboxNotRunningException):
        sandbox.files.read("a")
    with pytest.raises(SandboxNotRunningException):
        sandbox.files.exists("a")
    with pytest.raises(SandboxNotFoundException):
        sandbox.get_info()
    with pytest.raises(SandboxNotFoundException):
        sandbox.set_timeout(10)
    with pytest.raises(SandboxNotFoundException):
        Sandbox.connect(sandbox.sandbox_id)
    died = Sandbox.create()
    execution = died.run_code("import os\nprint('last words', flush=True)\nos._exit(3)")
    assert (execution.error.name, execution.error.value) == ("SystemExit", "3")
    assert "".join(execution.logs.stdout) == "last words\n"
    assert "as it was before this run" in "".join(execution.logs.stderr)
    assert died.is_running()


def test_a_sandbox_is_looked_at_listed_and_renewed(address):
    with (
        Sandbox.create(timeout=100, metadata={"for": "a test", "a&b": "="}) as one,
        Sandbox.create(metadata={"for": "another"}) as other,
    ):
        info = one.get_info()
        assert (info.sandbox_id, info.metadata) == (one.sandbox_id, {"for": "a test", "a&b": "="})
        assert info.state.value == "running"
        assert 90 < (info.end_at - info.started_at).total_seconds() <= 101
        one.set_timeout(1000)
        assert (one.get_info().end_at - info.started_at).total_seconds() > 900
        Sandbox.connect(one.sandbox_id, timeout=10)
        assert (one.get_info().end_at - info.started_at).total_seconds() > 900

        def listed(**options):
            paginator, found = Sandbox.list(**options), []
            while paginator.has_next:
                found += paginator.next_items()
            return [each.sandbox_id for each in found]

        assert {one.sandbox_id, other.sandbox_id} <= set(listed(limit=1))
        mine = SandboxQuery(metadata={"for": "a test", "a&b": "="})
        assert listed(query=mine) == [one.sandbox_id]
        one.run_code("len(bytearray(10**7))")
        (metrics,) = one.get_metrics()
        assert 10**7 < metrics.mem_used < metrics.mem_total
    assert listed(query=mine) == []


def test_time_that_is_over_ends_a_sandbox(address):
    sandbox = Sandbox.create(timeout=0)
    until(lambda: not sandbox.is_running())
    with pytest.raises(TimeoutException, match="its time was over"):
        sandbox.run_code("1")


def test_a_paused_sandbox_goes_on_where_it_was(address):
    sandbox = Sandbox.create()
    sandbox.run_code("x = [1]; open('f', 'w').write('text')")
    context = sandbox.create_code_context()
    sandbox.run_code("x = 2", context=context)
    before = requests.get(f"{address}/v1/node", timeout=SECONDS).json()["sessions"]
    assert sandbox.pause()
    assert not sandbox.pause()
    assert requests.get(f"{address}/v1/node", timeout=SECONDS).json()["sessions"] == before - 1
    assert sandbox.get_info().state.value == "paused"
    assert not sandbox.is_running()
    with pytest.raises(TimeoutException, match="it is paused"):
        sandbox.run_code("x")
    again = Sandbox.connect(sandbox.sandbox_id)
    assert again.run_code("x.append(2); x, open('f').read()").text == "([1, 2], 'text')"
    assert again.run_code("x", context=context).text == "2"
    assert sandbox.run_code("x").text == "[1, 2]"
    assert sandbox.pause()
    assert sandbox.kill()
    assert not sandbox.kill()


def test_a_sandbox_can_be_paused_when_its_time_is_over_and_go_on_when_it_is_used(address):
    sandbox = Sandbox.create(timeout=0, lifecycle={"on_timeout": "pause", "auto_resume": True})
    until(lambda: sandbox.get_info().state.value == "paused")
    assert sandbox.run_code("1 + 1").text == "2"
    assert sandbox.get_info().state.value == "running"
    sandbox.kill()


def test_forks_and_snapshots_begin_with_what_a_sandbox_had(sandbox):
    sandbox.run_code("x = [1]")
    copies = sandbox.fork(count=2)
    for number, copy in enumerate(copies):
        assert copy.run_code(f"x.append({number}); x").text == f"[1, {number}]"
    assert sandbox.run_code("x").text == "[1]"
    snapshot = sandbox.create_snapshot(name="before")
    sandbox.run_code("x = None")
    with Sandbox.create(snapshot.snapshot_id) as restored:
        assert restored.run_code("x").text == "[1]"
    found = Sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id).next_items()
    assert [(each.snapshot_id, each.names) for each in found] == [
        (snapshot.snapshot_id, ["before"])
    ]
    assert Sandbox.delete_snapshot(snapshot.snapshot_id)
    assert not Sandbox.delete_snapshot(snapshot.snapshot_id)
    with pytest.raises(SandboxException, match="no snapshot"):
        Sandbox.create(snapshot.snapshot_id)
    for copy in copies:
        copy.kill()


def test_the_asynchronous_client_does_the_same(address):
    async def use() -> None:
        async with await AsyncSandbox.create() as sandbox:
            assert (await sandbox.run_code("x = 1; x + 1")).text == "2"
            await sandbox.files.write("a", "b")
            assert await sandbox.files.read("a") == "b"
            assert [entry.name for entry in await sandbox.files.list(".")] == ["a"]
            context = await sandbox.create_code_context()
            runs = [sandbox.run_code(f"{n} * 2", context=context) for n in range(5)]
            assert [each.text for each in await asyncio.gather(*runs)] == ["0", "2", "4", "6", "8"]
            assert await sandbox.is_running()
            assert await sandbox.pause()
            sandbox = await sandbox.connect()
            assert (await sandbox.run_code("x")).text == "1"
            await sandbox.kill()
            assert not await sandbox.is_running()

    asyncio.run(asyncio.wait_for(use(), SECONDS))


def digest(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def test_a_tenant_reaches_its_own_sandboxes_only(tmp_path):
    config = f"""
        [tenants.a]
        keys = ["{digest("key-a")}"]
        [tenants.b]
        keys = ["{digest("key-b")}"]
    """
    with node(tmp_path, config, key="key-a") as address:
        with pytest.raises(AuthenticationException):
            Sandbox.create(api_key="none")
        sandbox = Sandbox.create(metadata={"of": "a"})
        sandbox.run_code("secret = 1")
        others = {"api_key": "key-b"}
        for call in (Sandbox.connect, Sandbox.get_info, Sandbox.pause, Sandbox.fork):
            with pytest.raises(SandboxNotFoundException):
                call(sandbox.sandbox_id, **others)
        assert not Sandbox.kill(sandbox.sandbox_id, **others)
        assert Sandbox.list(**others).next_items() == []
        # What reaches a sandbox is its token, whatever the route.
        other = Sandbox.create(**others)
        headers = {
            "E2b-Sandbox-Id": sandbox.sandbox_id,
            "X-Access-Token": other._envd_access_token,
            "X-API-Key": "key-b",
        }
        for method, route, body in [
            ("POST", "/execute", {"code": "secret"}),
            ("GET", "/contexts", None),
            ("POST", "/contexts", {}),
            ("GET", "/files?path=a", None),
            ("POST", "/files?path=a", {}),
            ("POST", "/filesystem.Filesystem/Stat", {"path": "/"}),
            ("GET", "/health", None),
        ]:
            url = address + route
            answer = requests.request(method, url, headers=headers, json=body, timeout=SECONDS)
            assert answer.status_code == 502, route
        # Its own is enough.
        sandbox.files.write("a", "b")
        assert sandbox.run_code("open('a').read()").text == "b"
        assert len(sandbox.list_code_contexts()) == 1


def test_what_the_ceiling_does_not_allow_is_refused_or_left_out(tmp_path):
    config = f"""
        [ceiling]
        allow_net = ["*.example.com"]
        [tenants.none]
        keys = ["{digest("none")}"]
        [tenants.all]
        keys = ["{digest("all")}"]
        quotas = {{ sessions = 1 }}
        ceiling = {{ allow_public_net = true }}
    """
    with node(tmp_path, config, key="none"):
        # Clients ask for the internet by default.
        with Sandbox.create() as sandbox:
            assert sandbox.get_info().allow_internet_access is False
        with pytest.raises(SandboxException, match="other\\.com"):
            Sandbox.create(network={"allow_out": ["other.com"]})
        with Sandbox.create(network={"allow_out": ["a.example.com"], "deny_out": ["0.0.0.0/0"]}):
            pass
        with pytest.raises(SandboxException, match="no `\\[store\\]`"):
            Sandbox.create().pause()
        with Sandbox.create(api_key="all") as sandbox:
            assert sandbox.get_info().allow_internet_access is True
            with pytest.raises(RateLimitException, match="limit 1"):
                Sandbox.create(api_key="all", retries=0)
        with Sandbox.create(api_key="all", allow_internet_access=False) as sandbox:
            assert sandbox.get_info().allow_internet_access is False


def test_a_full_node_has_the_client_try_again(tmp_path):
    with node(tmp_path, "", "--max-sessions", "1"):
        first = Sandbox.create()
        with pytest.raises(ServiceBusyException):
            Sandbox.create(retries=0)
        ended = threading.Timer(0.5, first.kill)
        ended.start()
        with Sandbox.create() as second:
            assert second.run_code("1").text == "1"
        ended.join(SECONDS)


@pytest.mark.skipif(
    "ISOLET_TEST_WHEELS" not in os.environ,
    reason="`ISOLET_TEST_WHEELS` names no directory with Pyodide's builds of numpy and pillow",
)
def test_an_agent_of_smolagents_comes_to_its_final_answer(tmp_path):
    smolagents = pytest.importorskip("smolagents")
    from smolagents.models import ChatMessage, MessageRole

    class Scripted(smolagents.Model):
        def __init__(self, *codes: str):
            super().__init__(model_id="scripted")
            self.codes = iter(codes)
            self.shown = []

        def generate(self, messages, **_):
            self.shown.append("\n".join(str(message.content) for message in messages))
            text = f"Thought: go on.\n<code>\n{next(self.codes)}\n</code>"
            return ChatMessage(role=MessageRole.ASSISTANT, content=text)

    from smolagents import tool

    @tool
    def double(number: int) -> int:
        """Doubles.

        Args:
            number: what to double.
        """
        return 2 * number

    config = f"""
        [policy]
        wheels = ["{os.environ["ISOLET_TEST_WHEELS"]}"]
        offline = true
        [ceiling]
        packages = ["numpy", "pillow"]
    """
    with node(tmp_path, config):
        model = Scripted(
            "x = double(20)\nprint('x is', x)",
            "undefined",
            "final_answer({'sum': x + 2, 'both': (1, 2)})",
        )
        with smolagents.CodeAgent(
            tools=[double], model=model, executor_type="e2b", verbosity_level=0
        ) as agent:
            assert agent.run("go") == {"sum": 42, "both": (1, 2)}
        assert "x is 40" in model.shown[1]
        assert "NameError" in model.shown[2]
