"""What `isolet.inspect_ai` does, by the checks that Inspect has for sandboxes, and others."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("inspect_ai", reason="Inspect is not installed")

from inspect_ai.util import (
    OutputLimitExceededError,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
)
from inspect_ai.util._sandbox import self_check
from inspect_ai.util._sandbox.limits import override_sandbox_output_limit
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

import isolet
from isolet.inspect_ai import Policy, SandboxEnvironment

pytestmark = pytest.mark.anyio

OTHER_USERS = {"test_exec_as_user"}
"""The checks that need more than one user."""

FOREVER = "while True:\n  try:\n    while True: pass\n  except BaseException: pass"
"""Code that cannot be interrupted: it ends its interpreter."""


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


async def opened(config=None):
    environments = await SandboxEnvironment.sample_init("task", config, {})
    return environments["default"]


async def close(environment):
    await SandboxEnvironment.sample_cleanup("task", None, {"default": environment}, False)


@pytest.fixture(scope="module")
async def environment():
    environment = await opened()
    yield environment
    await close(environment)


@pytest.fixture
async def sandbox_env(environment, request, monkeypatch):
    """What the checks of Inspect itself, `self_check`, run with."""
    if request.node.originalname in OTHER_USERS:
        request.applymarker(pytest.mark.xfail(raises=SandboxUserUnsupportedError, strict=True))
    # They wait until processes are gone, and there are none.
    monkeypatch.setattr(self_check, "anyio", SimpleNamespace(sleep=lambda _: asyncio.sleep(0)))
    return environment


async def test_there_is_one_user(environment):
    for user in (None, "user", "1000"):
        assert (await environment.exec(["id", "-un"], user=user)).stdout == "user\n"
    with pytest.raises(SandboxUserUnsupportedError, match="no 'root'"):
        await environment.exec(["id"], user="root")


async def test_commands_have_a_shell_of_their_own(environment):
    await environment.exec(["python3", "-c", "import os; os.chdir('/tmp'); os.environ['A'] = '1'"])
    found = await environment.exec(["bash", "-c", 'pwd; echo "[$A]"'])
    assert found.stdout == "/home/user\n[]\n"
    missing = await environment.exec(["nosuch"])
    assert (missing.success, missing.returncode) == (False, 127)
    assert not (await environment.exec(["ls"], cwd="nosuch")).success


async def test_commands_at_once_take_turns(environment):
    scripts = [f"sleep 0.1; cat; echo {at}" for at in range(5)]
    found = await asyncio.gather(
        *(environment.exec(["sh", "-c", script], input="a") for script in scripts)
    )
    assert [each.stdout for each in found] == [f"a{at}\n" for at in range(5)]


async def test_input_leaves_no_file(environment):
    assert (await environment.exec(["ls", "-A", "/tmp"], input="a")).returncode == 0
    assert ".isolet-input" not in (await environment.exec(["ls", "-A", "/tmp"])).stdout


@pytest.mark.parametrize("stream", ["1", "2"])
async def test_too_much_output_is_an_error(environment, stream):
    command = ["sh", "-c", f"seq 1 1000 >&{stream}"]
    assert (await environment.exec(command)).success
    with override_sandbox_output_limit(1024), pytest.raises(OutputLimitExceededError) as raised:
        await environment.exec(command)
    assert raised.value.truncated_output.startswith("1\n2\n")


async def test_output_past_the_limit_of_the_sample_is_an_error():
    with override_sandbox_output_limit(1024):
        environment = await opened()
    with pytest.raises(OutputLimitExceededError):
        await environment.exec(["seq", "1", "1000"])
    await close(environment)


async def test_a_session_that_has_ended_is_unavailable():
    environment = await opened(Policy(checkpoint=False))
    with pytest.raises(TimeoutError, match="terminated"):
        await environment.exec(["python3", "-c", FOREVER], timeout=1)
    with pytest.raises(SandboxUnavailableError):
        await environment.exec(["ls"])
    await close(environment)


async def test_a_command_without_a_timeout_ends_with_the_limit_of_its_time():
    environment = await opened(Policy(limits={"run_time": 0.5}))
    with pytest.raises(TimeoutError):
        await environment.exec(["sleep", "20"])
    await close(environment)


async def test_what_a_file_larger_than_may_cross_raises():
    environment = await opened(Policy(limits={"value_bytes": 1000}))
    await environment.exec(["sh", "-c", "head -c 2000 /dev/zero > large"])
    with pytest.raises(OutputLimitExceededError):
        await environment.read_file("large", text=False)
    await close(environment)


async def test_a_policy_is_read_from_a_file(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("from the host")
    config = tmp_path / "isolet.yaml"
    config.write_text("env: {MODE: test}\nmounts: {/data: data, /out: {path: data, mode: overlay}}")
    environment = await opened(str(config))
    script = 'echo "$MODE"; cat /data/a.txt; echo new > /out/b.txt; touch /data/c'
    ran = await environment.exec(["sh", "-c", script])
    await close(environment)
    assert ran.stdout == "test\nfrom the host"
    assert not ran.success
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["a.txt"]


async def test_mistakes_in_a_policy_end_the_task():
    with pytest.raises(TypeError, match="no key 'packets'"):
        await SandboxEnvironment.task_init("task", Policy(packets=["rich"]))
    with pytest.raises(isolet.ConfigError):
        await SandboxEnvironment.task_init("task", Policy(packages="rich"))
