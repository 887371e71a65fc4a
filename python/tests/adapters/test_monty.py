"""`MONTY_BIN=isolet` gives Monty's clients full CPython, and what is built on them."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import json
import os
import pathlib
import signal

import pytest
from parameter_ids import shown

pytest.importorskip("pydantic_monty", reason="Monty's client is not installed")

import pydantic_monty
from pydantic_monty import AsyncMonty, Monty, MontyRuntimeError, MontySyntaxError, MountDir

from isolet._find import find_binary

SECONDS = 60


@pytest.fixture(autouse=True, scope="module")
def worker():
    """Has Monty's clients start isolet, as a user's environment does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONTY_BIN", find_binary())
        yield


@pytest.fixture(scope="module")
def pool(worker):
    with Monty(request_timeout=SECONDS) as pool:
        yield pool


@pytest.fixture
def session(pool):
    with pool.checkout() as session:
        yield session


def len_of(value):
    return len(value)


def failure(session, code, **options):
    with pytest.raises(MontyRuntimeError) as caught:
        session.feed_run(code, **options)
    return caught.value


def test_the_worker_is_cpython(session):
    code = """
import sys
from abc import ABC, abstractmethod

class Shape(ABC):
    @abstractmethod
    def area(self): ...

class Square(Shape):
    def __init__(self, side): self.side = side
    @property
    def area(self): return self.side ** 2

with open("/tmp/notes.txt", "w") as file:
    print(*(Square(n).area for n in range(4)), file=file)
match open("/tmp/notes.txt").read().split():
    case [first, *rest]:
        found = first, rest
sys.implementation.name, found, f"{'%s' % found[0]!r:>5}"
"""
    assert session.feed_run(code) == ("cpython", ("0", ["1", "4", "9"]), "  '0'")


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, -(2**63), 2**200, -(2**64), 1.5, float("-inf"), "caf\u00e9 \U0001f40d"),
        *(b"\x00\xff", [1, [2, [3]]], (1, (2,)), {"a": {1: (None,)}}, {1, 2}, frozenset([3])),
        *(complex(-0.0, 2), ..., decimal.Decimal("1.20"), pathlib.PurePosixPath("/a/b")),
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 1, 2, 3, 4, 5, 678),
        datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=-3))),
        datetime.time(23, 59, 59, 999999),
        datetime.timedelta(days=-1, seconds=5, microseconds=7),
        *(datetime.timezone.utc, int, ValueError, type(None)),
    ],
    ids=shown,
)
def test_a_value_goes_in_and_comes_back(session, value):
    back = session.feed_run("value", inputs={"value": value})
    assert (back, type(back)) == (value, type(value))
    assert repr(back) == repr(value)


def test_however_deep_a_value_is_it_crosses(session):
    deep = []
    for _ in range(5_000):
        deep = [deep]
    code = "found, depth = value, 0\nwhile found: found, depth = found[0], depth + 1\ndepth"
    assert session.feed_run(code, inputs={"value": deep}) == 5_000
    back = session.feed_run("made = {}\nfor n in range(5_000): made = {n: (made,)}\nmade")
    for number in reversed(range(5_000)):
        (back,) = back[number]
    assert back == {}


def test_an_object_that_is_there_twice_is_one_object(session):
    shared = [1]
    assert session.feed_run("a is b[0]", inputs={"a": shared, "b": [shared]})
    code = "[a is b, a == b, {a: 1}[b]]"
    assert session.feed_run(code, inputs={"a": len_of, "b": len_of}) == [True, True, 1]
    code = "x = []\n[x, x]"
    one, other = session.feed_run(code)
    assert one is other


def test_what_has_no_counterpart_comes_as_its_repr_and_a_cycle_ends(session):
    assert session.feed_run("range(3)") == "range(0, 3)"
    assert session.feed_run("x = [1]; x.append(x); x") == [1, "[...]"]
    assert session.feed_run("import fractions; fractions.Fraction(1, 3)") == "Fraction(1, 3)"
    assert session.feed_run("import sys; sys.version_info").major == 3


def test_an_instance_of_the_guest_keeps_its_identity(session):
    code = """
import dataclasses
@dataclasses.dataclass
class Point:
    x: int
    y: int = 2
kept = Point(1)
kept
"""
    proxy = session.feed_run(code)
    assert (proxy.name, proxy.attributes, proxy.is_dataclass) == ("Point", {"x": 1, "y": 2}, True)
    assert session.feed_run("given is kept", inputs={"given": proxy})


def test_state_survives_and_sessions_share_nothing(pool):
    with pool.checkout() as session:
        session.feed_run("total = 1")
        assert session.feed_run("total += 1\ntotal") == 2
    with pool.checkout() as session:
        assert "total" in str(failure(session, "total"))


def test_functions_and_values_are_looked_up_when_they_are_needed(session):
    calls = []

    def search(query, *, limit=1):
        calls.append((query, limit))
        return [query] * limit

    lookup = {"search": search, "limit": 2}
    code = "def both(words): return [search(w, limit=limit) for w in words]\nboth(['a', 'b'])"
    assert session.feed_run(code, external_lookup=lookup) == [["a", "a"], ["b", "b"]]
    assert calls == [("a", 2), ("b", 2)]
    assert session.feed_run("f = search\nf('c')", external_lookup=lookup) == ["c"]
    assert str(failure(session, "missing(1)")) == "NameError: name 'missing' is not defined"
    assert session.feed_run("try:\n  missing\nexcept NameError as e:\n  found = e.name\nfound") == (
        "missing"
    )


def test_an_exception_of_a_function_is_raised_where_it_was_called(session):
    def find(name):
        raise FileNotFoundError(2, "nothing here", name)

    code = """
try:
    find("x.txt")
except OSError as error:
    found = type(error).__name__, error.errno, error.filename
found
"""
    found = session.feed_run(code, external_lookup={"find": find})
    assert found == ("FileNotFoundError", 2, "x.txt")


@pytest.mark.parametrize(
    "error",
    [
        json.JSONDecodeError("bad", "[1,", 2),
        UnicodeDecodeError("utf-8", b"ab\xff", 2, 3, "invalid start byte"),
        UnicodeEncodeError("ascii", "caf\u00e9", 3, 4, "ordinal not in range(128)"),
        UnicodeEncodeError("ascii", "\u00e9\u00fc", 0, 2, "ordinal not in range(128)"),
    ],
    ids=shown,
)
def test_an_exception_keeps_its_class_in_both_directions(session, error):
    def fail():
        raise error

    code = """
try:
    fail()
except ValueError as error:
    found = type(error).__name__, str(error), [getattr(error, n, None) for n in ("pos", "start")]
found
"""
    places = [getattr(error, name, None) for name in ("pos", "start")]
    found = session.feed_run(code, external_lookup={"fail": fail})
    assert found == (type(error).__name__, str(error), places)
    raised = failure(session, "fail()", external_lookup={"fail": fail}).exception()
    assert (type(raised), str(raised)) == (type(error), str(error))


def test_an_exception_of_the_guest_keeps_its_class(session):
    raised = failure(session, "import json\njson.loads('[1,')").exception()
    assert isinstance(raised, json.JSONDecodeError)
    assert (raised.doc, raised.pos) == ("[1,", 3)
    raised = failure(session, "b'a\\xff'.decode()").exception()
    assert isinstance(raised, UnicodeDecodeError)
    assert raised.object == b"a\xff"
    # A surrogate is no character that the protocol can pass.
    raised = failure(session, "'a\\ud800'.encode()").exception()
    assert isinstance(raised, UnicodeEncodeError)
    assert raised.start == 1


def test_coroutines_run_side_by_side():
    async def main():
        started = []
        both = asyncio.Event()

        async def fetch(number):
            started.append(number)
            if len(started) == 2:
                both.set()
            await both.wait()
            return number * 10

        async with AsyncMonty(request_timeout=SECONDS) as pool, pool.checkout() as session:
            options = {"external_lookup": {"fetch": fetch}}
            code = "import asyncio\nawait asyncio.gather(fetch(1), fetch(2))"
            assert await session.feed_run(code, **options) == [10, 20]
            code = """
async def later(number):
    return await fetch(number) + 1
tasks = [asyncio.create_task(later(n)) for n in (3, 4)]
sum([await task for task in tasks]), await fetch(5)
"""
            assert await session.feed_run(code, **options) == (72, 50)
            code = "await asyncio.sleep(0.001, 'slept')"
            assert await session.feed_run(code) == "slept"

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_a_coroutine_that_fails_fails_in_the_task_that_waits():
    async def main():
        async def fail(text):
            raise LookupError(text)

        async with AsyncMonty(request_timeout=SECONDS) as pool, pool.checkout() as session:
            code = """
import asyncio
[str(e) for e in await asyncio.gather(fail("a"), fail("b"), return_exceptions=True)]
"""
            lookup = {"fail": fail}
            assert await session.feed_run(code, external_lookup=lookup) == ["a", "b"]

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_an_object_of_the_host_is_asked_for_its_attributes_and_methods(session):
    @dataclasses.dataclass
    class Account:
        owner: str
        balance: int = 0

        def add(self, amount, *, note=""):
            self.balance += amount
            return f"{note}{self.balance}"

    account = Account("Ada")
    given = pydantic_monty.ClassInstance(
        account, lazy_attrs=("owner", "balance"), allowed_methods=("add",)
    )
    code = "account.add(5, note='now '), account.owner, account.balance"
    assert session.feed_run(code, inputs={"account": given}) == ("now 5", "Ada", 5)
    assert account.balance == 5
    assert session.feed_run("account") is account
    error = failure(session, "account.secret")
    assert str(error) == "AttributeError: 'Account' object has no attribute 'secret'"


def test_a_class_of_the_host_makes_instances(session):
    class Point:
        ORIGIN = 0

        def __init__(self, x):
            self.x = x

        @classmethod
        def double(cls, x):
            return 2 * x

    options = {"lazy_attrs": ("ORIGIN",), "allowed_methods": ("double",)}
    given = pydantic_monty.ClassType(Point, init=True, instance_eager_attrs="all", **options)
    code = "p = Point(4)\np.x, isinstance(p, Point), Point.ORIGIN, Point.double(5)"
    assert session.feed_run(code, inputs={"Point": given}) == (4, True, 0, 10)
    missing = "AttributeError: type object 'Point' has no attribute 'secret'"
    assert str(failure(session, "Point.secret")) == missing
    refused = failure(session, "P(1)", inputs={"P": pydantic_monty.ClassType(Point)}).exception()
    assert isinstance(refused, TypeError)


def test_a_module_of_the_host_is_imported(pool):
    rates = pydantic_monty.ExternalModule({"RATE": 3})
    shop = pydantic_monty.ExternalModule({"price": lambda item: len(item), "rates": rates})
    with pool.checkout(external_modules={"shop": shop}) as session:
        code = "from shop import price\nimport shop.rates\nprice('tea') * shop.rates.RATE"
        assert session.feed_run(code) == 9
        assert "No module named 'shops'" in str(failure(session, "import shops"))


def test_mounted_files_are_read_and_written(session, tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "raw.bin").write_bytes(b"\xff\x00")
    mount = MountDir(host_path=tmp_path, virtual_path="/data", mode="read-write")
    code = """
import csv, glob, json, os, pathlib, shutil
rows = list(csv.DictReader(open("data.csv")))
with open("/data/out.json", "w") as file:
    json.dump(rows, file)
    file.flush()
    file.write("\\n")
with open("log.txt", "a") as file:
    file.write("one\\n")
with open("log.txt", "a") as file:
    file.write("two\\n")
os.makedirs("new/dir")
pathlib.Path("new/dir/x.bin").write_bytes(pathlib.Path("deep/raw.bin").read_bytes() * 2)
os.rename("new/dir/x.bin", "new/y.bin")
shutil.copy("log.txt", "/tmp/log.txt")
shutil.copy2("/tmp/log.txt", "new/log.txt")
walked = sorted(name for _, _, names in os.walk("/data") for name in names)
found = os.path.isdir("new"), os.path.exists("none"), os.path.getsize("new/y.bin")
os.getcwd(), rows, walked, found, sorted(glob.glob("*.txt")), open("/tmp/log.txt").read()
"""
    cwd, rows, walked, found, texts, log = session.feed_run(code, mount=mount)
    assert (cwd, rows) == ("/data", [{"a": "1", "b": "2"}])
    assert walked == ["data.csv", "log.txt", "log.txt", "out.json", "raw.bin", "y.bin"]
    assert (tmp_path / "new" / "log.txt").read_text() == "one\ntwo\n"
    assert (found, texts, log) == ((True, False, 4), ["log.txt"], "one\ntwo\n")
    assert (tmp_path / "out.json").read_text() == '[{"a": "1", "b": "2"}]\n'
    assert (tmp_path / "new" / "y.bin").read_bytes() == b"\xff\x00\xff\x00"
    for code in ("open('none.txt')", "open('/data/none/x', 'w')", "os.listdir('none')"):
        assert str(failure(session, code, mount=mount)).startswith("FileNotFoundError: [Errno 2]")
    read_only = MountDir(host_path=tmp_path, virtual_path="/data", mode="read-only")
    assert "PermissionError" in str(failure(session, "open('x', 'w')", mount=read_only))
    assert not (tmp_path / "x").exists()


def test_variables_of_the_handler_are_seen(session):
    def handler(*, name, args, kwargs, **_):
        return {"KEY": "value"}.get(args[0]) if name == "os.getenv" else pydantic_monty.NOT_HANDLED

    code = "import os\nos.getenv('KEY'), os.getenv('NONE', 'default')"
    assert session.feed_run(code, os=handler) == ("value", "default")


def test_a_feed_asks_for_nothing_that_its_code_does_not(pool):
    with pool.checkout() as session:
        assert session.feed_start("x = add(2, 3)").function_name == "add"
    with pool.checkout() as session:
        code = "import os\nos.getenv('KEY')"
        answered = {"os.getenv": "value"}
        assert session.feed_run(code, os=lambda *, name, **_: answered.get(name)) == "value"

        def deny(*, name, **_):
            raise PermissionError(f"{name} is denied")

        assert session.feed_run("1 + 1", os=deny, cwd="/guest/deep") == 2
        code = "import os\nos.chdir('/')\nos.path.isdir('/'), os.stat('/').st_mode & 0o40000 > 0"
        assert session.feed_run(code, os=deny) == (True, True)


def test_a_handler_that_knows_few_operations_is_asked_for_them(session):
    asked, files = [], {"/x/a.txt": "caf\u00e9"}

    def handler(*, name, args, **_):
        asked.append(name)
        path = str(args[0])
        if name == "Path.exists":
            return path in files
        if name == "Path.read_text":
            return files[path]
        if name == "Path.write_text":
            files[path] = args[1]
            return len(args[1])
        return None  # which is no answer to what it does not know

    code = """
import os.path, pathlib
there = pathlib.Path("/x/a.txt")
pathlib.Path("/x/b.txt").write_text("new")
there.read_text(), there.exists(), os.path.exists("/x/none"), there.is_file()
"""
    found = session.feed_run(code, os=handler)
    assert found == ("caf\u00e9", True, False, False)
    assert files["/x/b.txt"] == "new"
    assert asked[:4] == ["Path.write_text", "Path.read_text", "Path.exists", "Path.exists"]
    error = failure(session, "open('/x/a.txt')", os=handler)
    assert isinstance(error.exception(), FileNotFoundError)


def test_output_arrives_in_order(session):
    written = []
    code = """
import sys
print("a"); print("b", file=sys.stderr); print("c", end=" "); note(); print("caf\u00e9" * 20_000)
"""
    take = lambda stream, text: written.append((stream, text))  # noqa: E731
    lookup = {"note": lambda: written.append("called")}
    session.feed_run(code, external_lookup=lookup, print_callback=take)
    at = written.index("called")
    joined = "".join(text for _, text in written[:at])
    assert joined == "a\nb\nc "
    assert ("stderr", "b\n") in written
    assert "".join(text for _, text in written[at + 1 :]) == "caf\u00e9" * 20_000 + "\n"


def test_a_traceback_names_the_lines_of_the_code(session):
    error = failure(session, "def half(n):\n    return n / 0\n\nhalf(2)")
    frames = [(frame.filename, frame.line, frame.function_name) for frame in error.traceback()]
    assert frames == [("<python-input-0>", 4, "<module>"), ("<python-input-0>", 2, "half")]
    assert error.traceback()[1].source_line == "    return n / 0"
    assert isinstance(error.exception(), ZeroDivisionError)
    with pytest.raises(MontySyntaxError, match="was never closed"):
        session.feed_run("print((1)")
    error = failure(session, "class Odd(ValueError): pass\nraise Odd('no')")
    assert isinstance(error.exception(), ValueError)
    assert "Odd: no" in str(error)


def test_a_feed_that_takes_too_long_ends_and_the_session_lives(pool):
    with pool.checkout(limits={"max_feed_duration_secs": 0.3}) as session:
        error = failure(session, "x = 1\nwhile True: pass")
        assert "feed time limit exceeded" in str(error)
        assert not error.traceback()
        assert isinstance(error.exception(), TimeoutError)
        assert session.feed_run("x") == 1


def test_the_time_of_a_feed_does_not_count_for_the_start_of_its_session(pool):
    with pool.checkout(limits={"max_feed_duration_secs": 0.001}) as session:
        error = failure(session, "while True: pass")
        assert "feed time limit exceeded" in str(error)


def test_a_turn_that_takes_too_long_ends_but_a_feed_of_short_turns_does_not(pool):
    with pool.checkout(limits={"max_turn_duration_secs": 0.3}) as session:
        code = """
import time
for _ in range(4):
    end = time.monotonic() + 0.1
    while time.monotonic() < end: pass
    note()
"""
        session.feed_run(code, external_lookup={"note": lambda: None})
        error = failure(session, "while True: pass")
        assert "turn time limit exceeded" in str(error)
        assert session.feed_run("1") == 1


def test_memory_has_an_end(pool):
    with pool.checkout(limits={"max_memory": 32 << 20}) as session:
        error = failure(session, "x = [bytes(1 << 20) for _ in range(200)]")
        assert isinstance(error.exception(), MemoryError)
        assert "memory limit exceeded" in str(error)
        assert session.feed_run("1") == 1


def test_a_feed_over_its_budget_of_calls_is_ended_though_it_catches_everything(pool):
    calls = []
    with pool.checkout(limits={"max_suspensions": 3}) as session:
        code = """
while True:
    try:
        note()
    except BaseException:
        pass
"""
        error = failure(session, code, external_lookup={"note": lambda: calls.append(1)})
        assert isinstance(error.exception(), RuntimeError)
        assert len(calls) <= 3


def test_a_seed_and_a_zone_are_kept(pool):
    policy = {"random_start": {"seed": 42}, "timezone": "America/New_York"}
    code = "import random, time\nrandom.random(), time.tzname"
    results = []
    for _ in range(2):
        with pool.checkout(os_policy=policy) as session:
            results.append(session.feed_run(code))
    assert results[0] == results[1]
    assert results[0][1] == ("EST", "EDT")


def test_what_cannot_be_is_refused_with_a_reason(pool, session):
    with pytest.raises(pydantic_monty.MontyError, match="a session of CPython cannot be saved"):
        session.dump()
    assert session.feed_run("1") == 1
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
    refused = pool.checkout(os_policy={"datetime": moment})
    with pytest.raises(pydantic_monty.MontyError, match="the clock cannot stand still"):
        refused.__enter__()


def test_a_worker_that_dies_is_replaced(pool):
    with pool.checkout() as session:
        children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        workers = [
            int(child)
            for child in children
            if b"subprocess" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
        ]
        assert workers
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        with pytest.raises(pydantic_monty.MontyCrashedError):
            session.feed_run("1")
    with pool.checkout() as session:
        assert session.feed_run("2") == 2


def test_code_mode_of_pydantic_ai_runs_on_it():
    pytest.importorskip("pydantic_ai_harness", reason="Pydantic AI's harness is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai_harness import CodeMode

    code = """
import asyncio, statistics
class Reading(dict):
    def __init__(self, city, temp): super().__init__(city=city, temp=temp)
found = await asyncio.gather(get_weather(city='Paris'), get_weather(city='Tokyo'))
print("asked", len(found))
[Reading(one['city'], statistics.mean([one['temp'], 20])) for one in found]
"""
    answers = []

    def model(messages, info):
        returned = [p for p in messages[-1].parts if isinstance(p, ToolReturnPart)]
        if returned:
            answers.extend(part.content for part in returned)
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("run_code", {"code": code})])

    agent = Agent(FunctionModel(model), capabilities=[CodeMode()])

    @agent.tool_plain
    async def get_weather(city: str) -> dict[str, object]:
        """The weather of a city."""
        return {"city": city, "temp": len(city)}

    assert agent.run_sync("?").output == "done"
    shown = str(answers)
    for part in ("asked 2", "'temp': 12.5", "Paris", "Tokyo"):
        assert part in shown


def test_code_mode_of_fastmcp_runs_on_it():
    pytest.importorskip("fastmcp", reason="FastMCP is not installed")
    from fastmcp import Client, FastMCP
    from fastmcp.experimental.transforms.code_mode import CodeMode

    server = FastMCP("shop", transforms=[CodeMode()])

    @server.tool
    def price(item: str) -> int:
        return len(item)

    code = """
class Basket(list):
    pass
basket = Basket()
for item in ("tea", "bread"):
    basket.append(await call_tool("price", {"item": item}))
return [str(one) for one in basket]
"""

    async def main():
        async with Client(server) as client:
            result = await client.call_tool("execute", {"code": code})
            return str(result.data or result.content)

    shown = asyncio.run(asyncio.wait_for(main(), SECONDS))
    assert {"3", "5"} <= set(shown)
