"""A client of MCP servers on stdio, whose every wait is bounded."""

import json
import os
import select
import subprocess
import time

LEGACY, MODERN = "2025-06-18", "2026-07-28"

# Longer than any answer takes.
PATIENCE = 60.0

META = "io.modelcontextprotocol/"


class Client:
    """A server's process, and what it was asked.

    `approve` is called with the text of each question to the user, and the answer is yes. With
    `modern` the client speaks the revision in which a question is a result.
    """

    def __init__(self, command, environment=None, *, modern=False, approve=None, log=None):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment,
            bufsize=0)
        self.rest = b""
        self.count = 0
        self.modern = modern
        self.approve = approve
        self.capabilities = {"elicitation": {}} if approve else {}
        self.about = {"name": "bench", "version": "1"}
        self.instructions = ""
        if not modern:
            hello = {"protocolVersion": LEGACY, "capabilities": self.capabilities,
                     "clientInfo": self.about}
            self.instructions = self.request("initialize", hello).get("instructions", "")
            self.send({"method": "notifications/initialized"})

    def send(self, message):
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        while line:
            line = line[self.process.stdin.write(line):]

    def receive(self):
        """Waits for the next message."""
        until = time.monotonic() + PATIENCE
        pieces = [self.rest]
        while b"\n" not in pieces[-1]:
            left = until - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
            if not ready:
                raise TimeoutError(f"no answer within {PATIENCE:.0f} s")
            pieces.append(os.read(self.process.stdout.fileno(), 1 << 20))
            if not pieces[-1]:
                raise ConnectionError("the server has ended")
        line, _, self.rest = b"".join(pieces).partition(b"\n")
        return json.loads(line)

    def begin(self, method, params):
        self.count += 1
        if self.modern:
            params = {**params, "_meta": {
                META + "protocolVersion": MODERN,
                META + "clientInfo": self.about,
                META + "clientCapabilities": self.capabilities,
            }}
        self.send({"id": self.count, "method": method, "params": params})
        return self.count

    def answers(self, numbers):
        """Waits for the results of these requests, in their order."""
        results = {}
        while len(results) < len(numbers):
            message = self.receive()
            if "method" in message:
                self.asked(message)
            elif "error" in message:
                raise RuntimeError(message["error"])
            else:
                results[message["id"]] = message["result"]
        return [results[number] for number in numbers]

    def asked(self, message):
        """Answers a request of the server."""
        if message["method"] == "elicitation/create" and self.approve:
            self.approve(message["params"]["message"])
            result = {"action": "accept", "content": {"decision": "once"}}
            self.send({"id": message["id"], "result": result})

    def request(self, method, params):
        return self.answers([self.begin(method, params)])[0]

    def call(self, name, arguments):
        """Calls a tool, and answers the questions that come instead of a result."""
        params = {"name": name, "arguments": arguments}
        result = self.request("tools/call", params)
        while result.get("resultType") == "input_required":
            self.approve(result["inputRequests"]["approval"]["params"]["message"])
            yes = {"approval": {"action": "accept", "content": {"decision": "once"}}}
            again = {"inputResponses": yes, "requestState": result["requestState"]}
            result = self.request("tools/call", {**params, **again})
        return result

    def tools(self):
        return self.request("tools/list", {})["tools"]

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
