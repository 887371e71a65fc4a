"""A node has the kernel routes of a Jupyter server: with the shapes of Open WebUI's
`JupyterCodeExecuter`, over the libraries that it uses, and of Jupyter's gateway client.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import websockets
from node_process import serving

SECONDS = 60

KEYS = ("key of a", "key of b")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    config = tmp_path_factory.mktemp("node") / "node.toml"
    hashes = [hashlib.sha256(key.encode()).hexdigest() for key in KEYS]
    tenants = [f'[tenants.t{n}]\nkeys = ["sha256:{digest}"]' for n, digest in enumerate(hashes)]
    config.write_text("\n".join(tenants))
    with serving("--config", str(config)) as address:
        yield address


def message(kind: str, content: dict[str, Any], channel: str = "shell") -> dict[str, Any]:
    header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "username": "user"}
    header |= {"session": uuid.uuid4().hex, "date": "", "version": "5.3"}
    return {
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": content,
        "channel": channel,
    }


class Kernel:
    """A kernel of a node, and a connection to it."""

    def __init__(self, session: aiohttp.ClientSession, address: str, key: str) -> None:
        self.session, self.params = session, {"token": key}
        self.kernels = f"{address}/jupyter/api/kernels"
        self.id = ""
        self.socket: Any = None

    async def ask(self, method: str, path: str) -> tuple[int, Any]:
        url = f"{self.kernels}/{self.id}{path}".rstrip("/")
        async with self.session.request(method, url, params=self.params) as answer:
            return answer.status, await answer.json() if await answer.read() else None

    @property
    def channels(self) -> str:
        token = self.params["token"].replace(" ", "%20")
        return f"{self.kernels.replace('http', 'ws', 1)}/{self.id}/channels?token={token}"

    async def send(self, kind: str, content: dict[str, Any], channel: str = "shell") -> str:
        sent = message(kind, content, channel)
        await self.socket.send(json.dumps(sent))
        return sent["header"]["msg_id"]

    async def receive(self) -> dict[str, Any]:
        return json.loads(await asyncio.wait_for(self.socket.recv(), SECONDS))

    async def run(self, code: str, *, allow_stdin: bool = False) -> list[dict[str, Any]]:
        """Runs a cell. Returns all messages for it, up to the end."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}}
        content |= {"allow_stdin": allow_stdin, "stop_on_error": True}
        return await self.until_idle(await self.send("execute_request", content))

    async def until_idle(self, message_id: str) -> list[dict[str, Any]]:
        found = []
        while True:
            received = await self.receive()
            if received["parent_header"].get("msg_id") != message_id:
                continue
            if received["msg_type"] == "input_request":
                reply = message("input_reply", {"value": "Ada"}, "stdin")
                reply["parent_header"] = received["header"]
                await self.socket.send(json.dumps(reply))
            found.append(received)
            content = received["content"]
            if received["msg_type"] == "status" and content["execution_state"] == "idle":
                return found


@asynccontextmanager
async def kernel(address: str, key: str = KEYS[0]) -> AsyncIterator[Kernel]:
    async with aiohttp.ClientSession() as session:
        kernel = Kernel(session, address, key)
        async with session.post(kernel.kernels, params=kernel.params) as answer:
            assert answer.status == 201
            kernel.id = (await answer.json())["id"]
        async with websockets.connect(kernel.channels) as socket:
            kernel.socket = socket
            yield kernel
        assert (await kernel.ask("DELETE", ""))[0] in (204, 404)


def said(messages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each["content"] for each in messages if each["msg_type"] == kind]


async def closed(socket: Any) -> tuple[int, str]:
    """Waits until the node closes a connection. Returns the code and the reason."""
    try:
        while True:
            await asyncio.wait_for(socket.recv(), SECONDS)
    except websockets.exceptions.ConnectionClosed as error:
        assert error.rcvd is not None
        return error.rcvd.code, error.rcvd.reason


async def sessions(address: str, key: str = KEYS[0]) -> list[dict[str, Any]]:
    async with (
        aiohttp.ClientSession(headers={"X-API-Key": key}) as session,
        session.get(f"{address}/v1/sessions") as answer,
    ):
        return (await answer.json())["sessions"]


def test_cells_answer_as_open_webui_reads_them(address: str) -> None:
    async def work() -> None:
        async with kernel(address) as own:
            ran = await own.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
            streams = {each["name"]: each["text"] for each in said(ran, "stream")}
            assert streams == {"stdout": "out\n", "stderr": "err\n"}
            [result] = said(ran, "execute_result")
            assert result["data"] == {"text/plain": "42"}
            ran = await own.run(
                "from IPython.display import Image, display\n"
                "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n', format='png'))"
            )
            assert said(ran, "display_data")[0]["data"]["image/png"].startswith("iVBORw0KGgo")
            ran = await own.run("1 / 0")
            [error] = said(ran, "error")
            assert error["ename"] == "ZeroDivisionError"
            assert "division by zero" in "\n".join(error["traceback"])
            ran = await own.run("input('Who? ')", allow_stdin=True)
            assert said(ran, "execute_result")[0]["data"]["text/plain"] == "'Ada'"
        # Its session has ended with the kernel.
        assert await sessions(address) == []

    asyncio.run(work())


def test_a_kernel_is_interrupted_and_restarted(address: str) -> None:
    async def work() -> None:
        async with kernel(address) as own:
            await own.run("x = 1")
            content = {"code": "print('runs')\nwhile True: pass", "allow_stdin": False}
            running = await own.send("execute_request", content)
            while (await own.receive())["msg_type"] != "stream":
                pass
            assert (await own.ask("GET", ""))[1]["execution_state"] == "busy"
            assert (await own.ask("POST", "/interrupt"))[0] == 204
            ended = await own.until_idle(running)
            assert said(ended, "error")[0]["ename"] == "KeyboardInterrupt"
            status, described = await own.ask("POST", "/restart")
            assert (status, described["id"]) == (200, own.id)
            ran = await own.run("'x' in globals()")
            assert said(ran, "execute_result")[0]["data"]["text/plain"] == "False"
            assert len(await sessions(address)) == 1

    asyncio.run(work())


def test_a_kernel_is_its_tenants_only(address: str) -> None:
    async def work() -> None:
        async with kernel(address) as own:
            await own.run("secret = 'canary'")
            theirs = Kernel(own.session, address, KEYS[1])
            assert await theirs.ask("GET", "") == (200, [])
            theirs.id = own.id
            for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/interrupt")):
                assert (await theirs.ask(method, path))[0] == 404
            nobody = Kernel(own.session, address, "no key")
            nobody.id = own.id
            status, problem = await nobody.ask("GET", "")
            assert (status, "`?token=KEY`" in problem["hint"]) == (401, True)
            for other, status in ((theirs, 404), (nobody, 401)):
                with pytest.raises(websockets.exceptions.InvalidStatus) as caught:
                    await websockets.connect(other.channels)
                assert caught.value.response.status_code == status
            ran = await own.run("secret")
            assert said(ran, "execute_result")[0]["data"]["text/plain"] == "'canary'"

    asyncio.run(work())


def test_a_kernel_ends_with_its_session(address: str) -> None:
    async def work() -> None:
        async with kernel(address) as own:
            await own.run("x = 1")
            [session] = await sessions(address)
            url = f"{address}/v1/sessions/{session['id']}"
            async with own.session.delete(url, headers={"X-API-Key": KEYS[0]}) as answer:
                assert answer.status == 204
            assert await closed(own.socket) == (1001, "the kernel has ended")
            assert (await own.ask("GET", ""))[0] == 404

    asyncio.run(work())


def test_what_is_no_message_closes_its_connection_and_no_other(address: str) -> None:
    async def work() -> None:
        async with kernel(address) as own:
            for wrong in ("[]", '{"header": {}}', '{"header": 1, "channel": "shell"}'):
                async with websockets.connect(own.channels) as socket:
                    await socket.send(wrong)
                    code, reason = await closed(socket)
                    assert (code, reason.startswith("the message")) == (1007, True), reason
            ran = await own.run("6 * 7")
            assert said(ran, "execute_result")[0]["data"]["text/plain"] == "42"

    asyncio.run(work())


def test_what_gateways_ask_first_is_answered(address: str) -> None:
    async def work() -> None:
        headers = {"Authorization": f"token {KEYS[0]}"}
        async with aiohttp.ClientSession(headers=headers) as session:

            async def get(path: str) -> tuple[int, Any]:
                async with session.get(f"{address}/jupyter/api{path}") as answer:
                    return answer.status, await answer.json()

            assert (await get(""))[1].keys() == {"version"}
            _, specs = await get("/kernelspecs")
            assert specs["default"] == "isolet"
            assert specs["kernelspecs"]["isolet"]["spec"]["language"] == "python"
            assert (await get("/kernelspecs/isolet"))[0] == 200
            status, problem = await get("/kernelspecs/julia")
            assert (status, "`isolet`" in problem["detail"]) == (404, True)
            body = {"name": "julia", "env": {"KERNEL_USERNAME": "ada"}}
            async with session.post(f"{address}/jupyter/api/kernels", json=body) as answer:
                assert answer.status == 404

    asyncio.run(work())
