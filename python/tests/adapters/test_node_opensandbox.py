"""A node speaks OpenSandbox's protocol with its own clients, and with LiteLLM."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

# Otherwise it asks the network for prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import httpx
import pytest
from code_interpreter import CodeInterpreter, SupportedLanguage
from code_interpreter.sync import CodeInterpreterSync
from litellm.sandbox import main as litellm
from node_process import serving
from opensandbox import Sandbox, SandboxManager
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.execd import CommandStatus, RunCommandOpts
from opensandbox.models.filesystem import (
    ContentReplaceEntry,
    DirectoryListEntry,
    MoveEntry,
    SearchEntry,
    WriteEntry,
)
from opensandbox.models.sandboxes import NetworkPolicy, NetworkRule, SandboxFilter
from opensandbox.sync import SandboxSync

SECONDS = 60
CANARY = "canary-51d2e0"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node with two tenants, and a store of paused sessions."""
    directory = tmp_path_factory.mktemp("opensandbox")
    config = directory / "node.toml"
    keys = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("one", "two")}
    tenants = "".join(f'[tenants.{name}]\nkeys = ["sha256:{keys[name]}"]\n' for name in keys)
    config.write_text(f'[store]\ndirectory = "{directory}/store"\n{tenants}')
    with serving("--config", str(config)) as address:
        yield address


def connection(address: str, key: str = "one", **options: object) -> ConnectionConfigSync:
    domain = address.removeprefix("http://")
    return ConnectionConfigSync(api_key=key, domain=domain, disable_metrics=True, **options)


@pytest.fixture
def sandbox(address: str) -> Iterator[SandboxSync]:
    sandbox = SandboxSync.create(
        "opensandbox/code-interpreter:v1.1.0",
        env={"A": "é"},
        metadata={"for": "test&="},
        connection_config=connection(address),
    )
    try:
        yield sandbox
    finally:
        sandbox.kill()
        sandbox.close()


def printed(execution) -> str:
    return "".join(message.text for message in execution.logs.stdout)


def warned(execution) -> str:
    return "".join(message.text for message in execution.logs.stderr)


def ended(sandbox: SandboxSync, command: str) -> CommandStatus:
    """The status of a command in the background, once it has ended."""
    while (status := sandbox.commands.get_command_status(command)).running:
        pass
    return status


def test_cells_keep_their_variables_and_say_what_went_wrong(sandbox: SandboxSync) -> None:
    codes = CodeInterpreterSync.create(sandbox=sandbox).codes
    assert codes.ping()
    first = codes.run("import os, sys\nx = 6\nprint(os.environ['A'])\nprint('e', file=sys.stderr)")
    assert printed(first) == "é\n"
    assert warned(first) == "e\n"
    assert first.id
    assert first.execution_count == 1
    assert first.complete is not None
    assert codes.run("x * 7").result[0].text == "42"
    failed = codes.run("print('before')\n1 / 0")
    assert printed(failed) == "before\n"
    assert failed.error is not None
    assert (failed.error.name, failed.error.value) == ("ZeroDivisionError", "division by zero")
    assert any("1 / 0" in line for line in failed.error.traceback)
    context = codes.create_context("python")
    assert codes.run("'x' in globals()", context=context).result[0].text == "False"
    assert [each.id for each in codes.list_contexts("python")] == ["default", context.id]
    assert codes.get_context(context.id).language == "python"
    codes.delete_context(context.id)
    with pytest.raises(SandboxApiException, match="no context"):
        codes.get_context(context.id)
    shell = codes.create_context("bash")
    assert printed(codes.run("y=1; echo $y", context=shell)) == "1\n"
    assert printed(codes.run("echo $y", context=shell)) == "1\n"
    with pytest.raises(SandboxException, match=r"the language is \\?\"java\\?\""):
        codes.run("1", language="java")


def test_commands_have_a_status_and_those_in_the_background_leave_what_they_print(
    sandbox: SandboxSync,
) -> None:
    ran = sandbox.commands.run("echo $A $B; pwd", opts=RunCommandOpts(envs={"B": "b"}))
    assert (printed(ran), ran.exit_code) == ("é b\n/home/user\n", 0)
    failed = sandbox.commands.run("echo out; echo err >&2; exit 3")
    assert (printed(failed), failed.exit_code) == ("out\n", 3)
    assert warned(failed) == "err\n"
    listed = sandbox.commands.run(["printf", "%s|", "a b", "$A"])
    assert printed(listed) == "a b|$A|"
    there = RunCommandOpts(working_directory="/tmp", timeout=timedelta(seconds=0.3))
    assert printed(sandbox.commands.run("pwd", opts=there)) == "/tmp\n"
    late = sandbox.commands.run("sleep 60", opts=there)
    assert late.error is not None
    assert late.exit_code == 137
    assert late.error.traceback == ["the command has taken longer than 0.3 s"]
    started = sandbox.commands.run("echo begun; exit 4", opts=RunCommandOpts(background=True))
    assert started.id is not None
    status = ended(sandbox, started.id)
    assert (status.running, status.exit_code, status.content) == (False, 4, "echo begun; exit 4")
    logs = sandbox.commands.get_background_command_logs(started.id)
    assert (logs.content, logs.cursor) == ("begun\n", 6)
    endless = sandbox.commands.run("sleep 600", opts=RunCommandOpts(background=True))
    assert endless.id is not None
    assert sandbox.commands.get_command_status(endless.id).running
    sandbox.commands.interrupt(endless.id)
    assert ended(sandbox, endless.id).exit_code == 137
    with pytest.raises(SandboxApiException, match="no command `99`"):
        sandbox.commands.get_command_status("99")
    with pytest.raises(SandboxApiException, match="has no `POST /session`"):
        sandbox.commands.create_session()


def test_files_are_written_read_found_and_moved(sandbox: SandboxSync) -> None:
    files = sandbox.files
    files.write_files(
        [WriteEntry(path="/data/é.txt", data="é"), WriteEntry(path="/data/b.bin", data=b"\0\1")]
    )
    files.write_file("here.py", "import os")
    assert files.read_file("/data/é.txt") == "é"
    assert files.read_bytes("/data/b.bin") == b"\0\1"
    assert files.read_file("/home/user/here.py") == "import os"
    files.write_file("lines.txt", "a\nb\nc\n")
    assert files.read_file("lines.txt", offset=2, limit=1) == "b\n"
    assert files.read_bytes("lines.txt", range_header="bytes=2-3") == b"b\n"
    assert b"".join(files.read_bytes_stream("lines.txt", range_header="bytes=-2")) == b"c\n"
    with pytest.raises(SandboxException, match="416"):
        files.read_bytes("lines.txt", range_header="bytes=9-")
    info = files.get_file_info(["/data/é.txt"])["/data/é.txt"]
    assert (info.entry_type, info.size, info.mode) == ("file", 2, 666)
    files.create_directories([WriteEntry(path="/data/sub/deep")])
    files.move_files([MoveEntry(src="/data/b.bin", dest="/data/sub/c.bin")])
    entries = files.list_directory(DirectoryListEntry(path="/data", depth=2))
    assert {each.path: each.entry_type for each in entries} == {
        "/data/é.txt": "file",
        "/data/sub": "directory",
        "/data/sub/c.bin": "file",
        "/data/sub/deep": "directory",
    }
    found = files.search(SearchEntry(path="/data", pattern="*.bin"))
    assert [each.path for each in found] == ["/data/sub/c.bin"]
    replacement = ContentReplaceEntry(path="/data/é.txt", old_content="é", new_content="e")
    files.replace_contents([replacement])
    assert files.read_file("/data/é.txt") == "e"
    files.delete_files(["/data/é.txt"])
    files.delete_directories(["/data/sub"])
    assert files.list_directory(DirectoryListEntry(path="/data")) == []
    with pytest.raises(SandboxException, match="404"):
        files.read_file("/data/é.txt")
    with pytest.raises(SandboxApiException, match="has no `POST /files/permissions`"):
        files.set_permissions([])
    assert sandbox.get_metrics().memory_total_in_mib == 1024


def test_a_sandbox_has_a_life(address: str, sandbox: SandboxSync) -> None:
    async def manage() -> None:
        config = ConnectionConfig(api_key="one", domain=address, disable_metrics=True)
        async with await SandboxManager.create(config) as manager:
            found = await manager.list_sandbox_infos(SandboxFilter(metadata={"for": "test&="}))
            assert [each.id for each in found.sandbox_infos] == [sandbox.id]
            assert found.pagination.total_items == 1
            none = await manager.list_sandbox_infos(SandboxFilter(states=["Paused"]))
            assert none.sandbox_infos == []

    asyncio.run(manage())
    info = sandbox.get_info()
    assert (info.status.state, info.metadata) == ("Running", {"for": "test&="})
    renewed = sandbox.renew(timedelta(minutes=1))
    left = renewed.expires_at - datetime.now(timezone.utc)
    assert timedelta(seconds=50) < left <= timedelta(seconds=61)
    sandbox.commands.run("export KEPT=1; echo kept > kept.txt")
    sandbox.pause()
    assert sandbox.get_info().status.state == "Paused"
    resumed = SandboxSync.resume(sandbox.id, connection_config=connection(address))
    assert resumed.files.read_file("kept.txt") == "kept\n"
    resumed.close()
    connected = SandboxSync.connect(sandbox.id, connection_config=connection(address))
    connected.close()
    short = SandboxSync.create(
        "any", timeout=timedelta(seconds=1), connection_config=connection(address)
    )
    # Ended together with the sandbox.
    assert short.commands.run("sleep 60").exit_code == 137
    with pytest.raises(SandboxApiException, match="the sandbox is gone: its time was over"):
        short.get_info()
    short.close()


def test_what_a_sandbox_of_isolet_has_not_is_said(address: str, sandbox: SandboxSync) -> None:
    with pytest.raises(SandboxException, match="nothing on port 80"):
        sandbox.get_endpoint(80)
    with pytest.raises(SandboxException, match="isolet has no `GET /egress"):
        sandbox.get_egress_policy()
    with pytest.raises(SandboxApiException, match="isolet has no `POST /snapshots`"):
        sandbox.create_snapshot()
    headers = {"OPEN-SANDBOX-API-KEY": "one"}
    rule = {"action": "allow", "target": "a.example"}
    for body, status, said in [
        ({"snapshotId": "x"}, 501, "has no snapshots"),
        ({"volumes": [{"name": "v"}]}, 501, "has no `volumes`"),
        ({"lifecycle": {"preStart": {}}}, 501, "has no `lifecycle`"),
        ({"networkPolicy": {"defaultAction": "ask"}}, 400, "`allow` or `deny`"),
        ({"timeout": "x"}, 400, "at ['timeout']"),
        ({"networkPolicy": {"egress": [rule]}}, 403, "not allowed"),
    ]:
        answer = httpx.post(f"{address}/v1/sandboxes", json=body, headers=headers)
        assert (answer.status_code, said in answer.json()["message"]) == (status, True), answer.text
    denied = SandboxSync.create(
        "any",
        network_policy=NetworkPolicy(
            defaultAction="deny", egress=[NetworkRule(action="deny", target="b.example")]
        ),
        connection_config=connection(address),
    )
    answer = CodeInterpreterSync.create(sandbox=denied).codes.run(
        "import urllib.request as u; u.urlopen('http://b.example')"
    )
    assert answer.error is not None
    assert "b.example" in answer.error.value
    denied.kill()
    denied.close()


def test_a_sandbox_is_its_tenants(address: str, sandbox: SandboxSync) -> None:
    sandbox.files.write_file("secret.txt", CANARY)
    endpoint = f"{address}/opensandbox/{sandbox.id}"
    for headers in ({}, {"OPEN-SANDBOX-API-KEY": "two"}, {"X-Session-Token": "0" * 32}):
        for path in (
            f"{address}/v1/sandboxes/{sandbox.id}",
            f"{address}/v1/sandboxes/{sandbox.id}/endpoints/44772",
            f"{endpoint}/files/download?path=secret.txt",
        ):
            answer = httpx.get(path, headers=headers)
            assert answer.status_code in (401, 404), (headers, path)
            assert CANARY not in answer.text
            assert set(answer.json()) == {"code", "message"}
        code = {"code": "open('secret.txt').read()"}
        answer = httpx.post(f"{endpoint}/code", json=code, headers=headers)
        assert answer.status_code in (401, 404)
        assert CANARY not in answer.text
    with pytest.raises(SandboxException, match="no key of this node"):
        SandboxSync.create("any", connection_config=connection(address, key="wrong"))
    # By way of the server, clients send their key and no token.
    proxied = connection(address, use_server_proxy=True)
    same = SandboxSync.connect(sandbox.id, connection_config=proxied)
    assert same.files.read_file("secret.txt") == CANARY
    same.close()


def test_the_asynchronous_client_and_litellm_work_unmodified(address: str, monkeypatch) -> None:
    async def with_client() -> None:
        config = ConnectionConfig(api_key="one", domain=address, disable_metrics=True)
        sandbox = await Sandbox.create("any", connection_config=config)
        async with sandbox:
            interpreter = await CodeInterpreter.create(sandbox)
            ran = await interpreter.codes.run("2 + 2", language=SupportedLanguage.PYTHON)
            assert ran.result[0].text == "4"
            await sandbox.files.write_file("a.txt", "a")
            assert printed(await sandbox.commands.run("cat a.txt")) == "a"
            await sandbox.kill()

    async def with_litellm() -> None:
        code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n1 + 1"
        result = await litellm.acode_interpreter_tool("opensandbox", code)
        assert (result.stdout, result.stderr, result.error) == ("out\n", "err\n", None)
        assert result.results[0]["text"] == "2"
        assert result.execution_count == 1
        handle = await litellm.acreate_sandbox("opensandbox")
        failed = await litellm.arun_code("opensandbox", handle, "{}['a']")
        assert failed.error is not None
        assert failed.error["name"] == "KeyError"
        assert await litellm.adelete_sandbox("opensandbox", handle)
        assert not await litellm.adelete_sandbox("opensandbox", handle)

    asyncio.run(with_client())
    monkeypatch.setenv("OPEN_SANDBOX_API_BASE", f"{address}/v1")
    monkeypatch.setenv("OPEN_SANDBOX_API_KEY", "one")
    asyncio.run(with_litellm())
