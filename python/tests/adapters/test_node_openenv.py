"""`isolet serve --listen` speaks OpenEnv's protocol with OpenEnv's own client."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
import requests
from node_process import SECONDS, serving

pytest.importorskip("openenv", reason="OpenEnv is not installed")

from openenv.core.env_server.types import (
    EnvironmentMetadata,
    HealthResponse,
    ResetResponse,
    SchemaResponse,
    StepResponse,
)
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import isolet.openenv

STUBBORN = "while True:\n  try:\n    while True: pass\n  except BaseException: pass"
"""Code that cannot be interrupted: it ends its interpreter."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    config = tmp_path_factory.mktemp("node") / "node.toml"
    config.write_text("[policy.limits]\nrun_time = 60\ngrace = 60\n")
    with serving("--config", str(config)) as address:
        yield address


def environment(address: str, name: str = "coding", **more):
    return GenericEnvClient(f"{address}/openenv/{name}", **more).sync()


def sessions(address: str) -> int:
    return requests.get(f"{address}/v1/node", timeout=SECONDS).json()["sessions"]


def wait_for_sessions(address: str, number: int):
    end = time.monotonic() + SECONDS
    while sessions(address) != number:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_code_of_an_episode_shares_its_variables(address):
    with environment(address) as env:
        started = env.reset(seed=1)
        assert started.observation == {"stdout": "", "stderr": "", "exit_code": 0}
        assert (started.reward, started.done) == (0.0, False)
        assert env.step({"code": "x = [1, 'é']\nprint('a')"}).observation["stdout"] == "a\n"
        assert env.step({"code": "x"}).observation["stdout"] == '[1, "\\u00e9"]'
        assert env.step({"code": "object"}).observation["stdout"] == "<class 'object'>"
        state = env.state()
        assert (state["step_count"], state["last_exit_code"]) == (3, 0)
        assert len(state["episode_id"]) == 32
        code = "try:\n  1 / 0\nexcept Exception:\n  print('division' in format_exc())"
        assert env.step({"code": code}).observation["stdout"] == "True\n"


@pytest.mark.parametrize("name", ["coding", "repl"])
def test_a_seed_makes_episodes_alike(address, name):
    drawn = []
    for options in ({"seed": 1}, {"seed": 1}, {"seed": -1}, {}, {"seed": 1}):
        with environment(address, name) as env:
            env.reset()  # a seed is that of its episode
            env.reset(**options)
            code = "import random, time; x = (random.random(), time.time()); print(x)"
            observation = json.dumps(env.step({"code": code}).observation)
            drawn.append(re.search(r"\(0\.\d+, [\d.]+\)", observation).group())
    assert drawn[0] == drawn[1] == drawn[4]
    assert len(set(drawn)) == 3


@pytest.mark.parametrize("name", ["coding", "repl"])
def test_code_is_read_as_a_cell_of_ipython(address, name):
    with environment(address, name) as env:
        env.reset()
        observation = env.step({"code": "    x = %pwd\n    print(x)"}).observation
        assert "/home/user" in json.dumps(observation)


def test_what_the_code_does_is_no_error(address):
    with environment(address) as env:
        # Without a reset, too, as OpenEnv's.
        found = env.step({"code": "print('a')\n1 / 0"}).observation
        assert (found["stdout"], found["exit_code"]) == ("a\n", 1)
        assert "ZeroDivisionError: division by zero" in found["stderr"]
        assert env.step({"code": "exit()"}).observation["stderr"] == ""
        found = env.step({"code": "exit('why')"}).observation
        assert (found["exit_code"], found["stderr"].splitlines()[-1]) == (1, "SystemExit: why")
        assert env.step({"code": "import sys; sys.exit(3)"}).observation["exit_code"] == 3
        assert env.state()["last_exit_code"] == 3
        found = env.step({"code": "import os; os._exit(7)"}).observation
        assert found["exit_code"] == 7
        assert found["stderr"].endswith("what they changed is lost")
        assert env.step({"code": "1"}).observation["stdout"] == "1"


def test_a_reset_forgets_variables_and_names_the_episode(address):
    with environment(address) as env:
        env.reset()
        first = env.state()["episode_id"]
        env.step({"code": "x = 1"})
        env.reset()
        assert env.state()["episode_id"] != first
        assert "NameError" in env.step({"code": "x"}).observation["stderr"]
        env.reset(episode_id="mine")
        assert env.state() == {"episode_id": "mine", "step_count": 0, "last_exit_code": 0}


def test_code_that_ends_its_session_is_told_what_is_lost_and_it_goes_on(tmp_path):
    config = tmp_path / "node.toml"
    config.write_text("[policy.limits]\nrun_time = 1\ngrace = 0.1\n")
    with serving("--config", str(config)) as address, environment(address, "repl") as env:
        env.reset(context="abc")
        env.step({"code": "x = 1"})
        found = env.step({"code": STUBBORN})
        assert found.observation["result"]["exception"].endswith("what they changed is lost")
        assert (found.reward, found.done) == (-0.05, False)
        # What the client has given is there again.
        found = env.step({"code": "x in globals() if 'x' in globals() else context"})
        assert found.observation["result"]["stdout"] == '"abc"'
        wait_for_sessions(address, 1)


def test_an_answer_ends_an_episode_of_the_repl(address):
    with environment(address, "repl") as env:
        found = env.reset(context="a b c", task_prompt="Count", expected_answer="3")
        assert found.observation["result"]["stdout"] == (
            "REPL environment initialized.\n"
            "Context loaded (5 chars). Use 'context' variable to access it.\n"
            "Task: Count\n"
            "Use answer['content'] to store your answer, and set answer['ready'] = True when done."
        )
        assert found.observation["context_preview"] == "a b c"
        assert (found.observation["context_length"], found.observation["iteration"]) == (5, 0)
        assert {"answer", "context"} <= set(found.observation["available_variables"])
        found = env.step({"code": "n = len(context.split())\n_p = 1\nn"})
        result = found.observation["result"]
        assert result.pop("execution_time") > 0
        assert result == {
            "stdout": "3",
            "stderr": "",
            "locals_snapshot": {"n": "3"},
            "success": True,
            "exception": None,
        }
        assert (found.reward, found.done) == (0.0, False)
        assert "n" in found.observation["available_variables"]
        found = env.step({"code": "n.no"})
        assert found.observation["result"]["exception"].startswith("AttributeError: ")
        assert (found.reward, found.done) == (-0.05, False)
        found = env.step({"code": "print(f'FINAL({n})')"})
        assert (found.reward, found.done) == (1.0, True)
        assert found.metadata["final_answer"] == "3"
        state = env.state()
        assert (state["final_answer"], state["step_count"], state["iteration"]) == ("3", 3, 3)
        assert (state["context"], state["task_prompt"]) == ("a b c", "Count")
        assert {"n", "context", "answer"} <= set(state["namespace_keys"])


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("FINAL(f(1))".replace("f(1)", "(1, 2)"), "(1, 2)"),
        ("y = {'a': 1}\nprint('FINAL_VAR(y)')", "{'a': 1}"),
        ("FINAL_VAR('context')", "c"),
        ("answer['content'] = 42; answer['ready'] = True", "42"),
        ("class Odd:\n  def __str__(self): return 'odd'\nodd = Odd()\nFINAL_VAR('odd')", "odd"),
    ],
)
def test_an_answer_may_be_given_in_each_way(address, code, answer):
    with environment(address, "repl") as env:
        env.reset(context="c")
        found = env.step({"code": code})
        assert (found.done, found.metadata["final_answer"]) == (True, answer)
        # There is none to compare it with.
        assert found.reward == 0.0


def test_an_episode_of_the_repl_ends_with_its_last_iteration(address):
    with environment(address, "repl") as env:
        env.reset()
        assert env.step({"code": "", "is_final": True, "final_answer": "a"}).done
        assert env.state()["final_answer"] == "a"
        for content, answer, reward in [("", None, -0.1), ("so far", "so far", 0.0)]:
            env.reset()
            env.step({"code": f"answer['content'] = {content!r}"})
            for _ in range(28):
                assert not env.step({"code": "1"}).done
            found = env.step({"code": "print('does not run')"})
            assert found.observation["result"]["stdout"] == "Maximum iterations (30) reached."
            assert not found.observation["result"]["success"]
            assert (found.done, found.reward) == (True, reward)
            assert env.state()["final_answer"] == answer


def test_long_output_of_the_repl_is_cut(address):
    with environment(address, "repl") as env:
        env.reset()
        found = env.step({"code": "print('ä' * 8192)"}).observation["result"]["stdout"]
        assert found == "ä" * 8192 + "\n... (truncated, total 8193 chars)"


def error_of(connection, message: str | bytes) -> dict:
    connection.send(message)
    answer = json.loads(connection.recv(SECONDS))
    assert answer["type"] == "error"
    return answer["data"]


def test_errors_have_the_codes_of_openenv(address):
    url = address.replace("http", "ws")
    with connect(f"{url}/openenv/coding/ws") as connection:
        assert error_of(connection, "{")["code"] == "INVALID_JSON"
        assert error_of(connection, '{"type": "dance"}')["code"] == "UNKNOWN_TYPE"
        for invalid in (
            "[1]",
            "{}",
            '{"type": "step"}',
            '{"type": "step", "data": [1]}',
            '{"type": "step", "data": {"cod": "1"}}',
            '{"type": "step", "data": {"code": "1"}, "more": 1}',
            '{"type": "reset", "data": {"episode_id": 1}}',
        ):
            error = error_of(connection, invalid)
            assert error["code"] == "VALIDATION_ERROR", invalid
            assert error["message"] == error["errors"][0]["msg"]
        call = {"jsonrpc": "2.0", "id": 5, "method": "tools/list"}
        connection.send(json.dumps({"type": "mcp", "data": call}))
        answer = json.loads(connection.recv(SECONDS))
        assert (answer["type"], answer["data"]["id"]) == ("mcp", 5)
        assert answer["data"]["error"]["code"] == -32601
        connection.send('{"type": "close"}')
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(SECONDS)
        assert closed.value.rcvd.code == 1000
    with environment(address, "repl") as env:
        for asked in (env.state, lambda: env.step({"code": "1"})):
            with pytest.raises(RuntimeError, match=r"Call reset\(\) first.*EXECUTION_ERROR"):
                asked()
    with connect(f"{url}/openenv/coding/ws?session_id=x") as connection:
        answer = json.loads(connection.recv(SECONDS))
        assert answer["data"]["code"] == "SESSION_ERROR"


def test_a_message_that_is_too_long_closes_the_connection(address):
    url = f"{address.replace('http', 'ws')}/openenv/coding/ws"
    with connect(url, max_size=None) as connection:
        # As long as clients allow is not too long.
        code = "x = '" + "y" * (90 << 20) + "'\nlen(x)"
        connection.send(json.dumps({"type": "step", "data": {"code": code}}))
        assert json.loads(connection.recv(SECONDS))["type"] in ("observation", "error")
        # Where it is refused depends on how much the kernels keep.
        with contextlib.suppress(ConnectionClosed):
            connection.send("x" * ((100 << 20) + 1))
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(SECONDS)
        assert closed.value.rcvd.code == 1009


def test_the_client_of_mcp_is_told_that_there_are_no_tools(address):
    client = MCPToolClient(f"{address}/openenv/coding").sync()
    with pytest.raises(RuntimeError, match="no tools of MCP"):
        client.connect()


def test_requests_without_a_connection_have_an_environment_each(address):
    def ask(method: str, path: str, body: object = None):
        answer = requests.request(method, f"{address}/openenv/{path}", json=body, timeout=SECONDS)
        return answer.status_code, answer.json()

    status, found = ask("POST", "coding/step", {"action": {"code": "print(1)"}, "timeout_s": 9})
    assert status == 200
    assert StepResponse(**found).observation["stdout"] == "1\n"
    status, found = ask("POST", "coding/step", {"action": {"code": "while 1: 0"}, "timeout_s": 0.1})
    assert (status, found["observation"]["exit_code"]) == (200, 1)
    assert ResetResponse(**ask("POST", "repl/reset", {"context": "x"})[1]).done is False
    assert ResetResponse(**ask("POST", "coding/reset")[1]).observation["exit_code"] == 0
    assert ask("GET", "coding/state")[1]["step_count"] == 0
    assert ask("GET", "repl/state")[0] == 422
    assert ask("POST", "coding/step", {"action": {"cod": "1"}})[0] == 422
    assert ask("POST", "coding/step", [1])[0] == 422
    assert HealthResponse(**ask("GET", "coding/health")[1]).status == "healthy"
    assert ask("GET", "chess/health")[0] == 404
    for name, fields in {"coding": {"stdout"}, "repl": {"result", "iteration"}}.items():
        schema = SchemaResponse(**ask("GET", f"{name}/schema")[1])
        assert fields | {"reward", "done"} <= set(schema.observation["properties"])
        assert "code" in schema.action["properties"]
        assert EnvironmentMetadata(**ask("GET", f"{name}/metadata")[1]).name == f"{name}_env"
    wait_for_sessions(address, 0)


def test_a_full_node_says_so_and_a_connection_waits_for_room():
    with serving("--max-sessions", "1") as address:
        first = environment(address)
        first.connect()
        second = environment(address)
        with second, pytest.raises(RuntimeError, match=r"limit 1 sessions.*CAPACITY_REACHED"):
            second.reset()
        url = f"{address.replace('http', 'ws')}/openenv/coding/ws"
        with connect(url, open_timeout=SECONDS) as connection:
            error = json.loads(connection.recv(SECONDS))["data"]
            assert (error["active_sessions"], error["max_sessions"]) == (1, 1)
        # Its connection is accepted when the first one's session has ended.
        waiting = environment(address)
        thread = threading.Thread(target=waiting.connect)
        thread.start()
        first.close()
        thread.join(SECONDS)
        assert waiting.step({"code": "6 * 7"}).observation["stdout"] == "42"
        waiting.close()


def test_a_client_that_goes_without_a_word_leaves_no_session(address):
    parts = urlsplit(address)
    wait_for_sessions(address, 0)
    for message in (None, '{"type": "step", "data": {"code": "while True: pass"}}'):
        url = f"ws://{parts.netloc}/openenv/coding/ws"
        with connect(url, close_timeout=0.1) as connection:
            if message is not None:
                connection.send(message)
            wait_for_sessions(address, 1)
            connection.socket.shutdown(socket.SHUT_RDWR)
            wait_for_sessions(address, 0)


def test_a_reset_in_the_middle_of_a_step_comes_after_it(address):
    url = f"{address.replace('http', 'ws')}/openenv/coding/ws"
    with connect(url) as connection:
        step = {"type": "step", "data": {"code": "x = sum(range(10**6)); x"}}
        state = {"type": "state"}
        for message in (step, {"type": "reset"}, state, step, state):
            connection.send(json.dumps(message))
        answers = [json.loads(connection.recv(SECONDS)) for _ in range(5)]
        assert answers[0]["data"]["observation"]["stdout"] == "499999500000"
        assert [answers[2]["data"]["step_count"], answers[4]["data"]["step_count"]] == [0, 1]


def test_a_client_that_gives_up_waiting_has_a_new_environment(address):
    with environment(address, message_timeout_s=1) as env:
        env.step({"code": "x = 1"})
        with pytest.raises(asyncio.TimeoutError):
            env.step({"code": "while True: pass"})
        assert "NameError" in env.step({"code": "x"}).observation["stderr"]
        wait_for_sessions(address, 1)


def test_two_hundred_environments_at_once_share_nothing(address):
    async def one(number: int) -> str:
        url = f"{address}/openenv/coding"
        # A machine with few processors starts them one after the other.
        async with GenericEnvClient(url, connect_timeout_s=SECONDS) as env:
            await env.reset()
            await env.step({"code": f"x = {number}"})
            connected.append(number)
            if len(connected) == 200:
                everybody.set()
            await asyncio.wait_for(everybody.wait(), 3 * SECONDS)
            return (await env.step({"code": "x"})).observation["stdout"]

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(200)))

    connected: list[int] = []
    everybody = asyncio.Event()
    assert asyncio.run(all_of_them()) == [str(number) for number in range(200)]
    wait_for_sessions(address, 0)


def test_a_key_comes_in_a_header(tmp_path):
    digest = hashlib.sha256(b"the-key").hexdigest()
    config = tmp_path / "node.toml"
    config.write_text(f'[tenants.a]\nkeys = ["sha256:{digest}"]\n')
    with serving("--config", str(config)) as address:
        with pytest.raises(ConnectionError, match="401"):
            environment(address).connect()
        with environment(address, headers={"Authorization": "Bearer the-key"}) as env:
            assert env.step({"code": "1"}).observation["stdout"] == "1"


@pytest.mark.parametrize("name", ["coding", "repl"])
def test_a_provider_starts_a_node_for_its_client_and_ends_it(name):
    provider = isolet.openenv.NodeProvider(name)
    with GenericEnvClient(provider=provider).sync() as env:
        env.reset()
        address = provider.base_url
        assert env.step({"code": "6 * 7"}).observation
        with pytest.raises(RuntimeError, match="runs already"):
            provider.start()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{address}/health", timeout=SECONDS)
    with pytest.raises(RuntimeError, match="has not been started"):
        _ = provider.base_url


def test_a_provider_says_why_its_node_does_not_start(tmp_path):
    config = tmp_path / "node.toml"
    config.write_text("max_runs = 0\n")
    provider = isolet.openenv.NodeProvider("coding", "--config", str(config))
    with pytest.raises(RuntimeError, match="`max_runs` is 0"):
        provider.start()
    provider.stop()
    with pytest.raises(isolet.ConfigError, match="chess"):
        isolet.openenv.NodeProvider("chess")


def test_a_provider_serves_many_clients_with_its_options():
    with isolet.openenv.NodeProvider("coding", "--max-sessions", "2") as provider:
        provider.wait_for_ready(SECONDS)
        first, second = (GenericEnvClient(provider.base_url).sync() for _ in range(2))
        with first, second:
            first.step({"code": "x = 1"})
            assert "NameError" in second.step({"code": "x"}).observation["stderr"]
            load = requests.get(provider.base_url.split("/openenv")[0] + "/v1/node", timeout=60)
            assert load.json()["max_sessions"] == 2
