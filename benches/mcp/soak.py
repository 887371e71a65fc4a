"""Uses one `isolet mcp` by two clients for long, and looks for what grows.

    python3 benches/mcp/soak.py target/release/isolet --minutes 60

Each client makes runs at an even pace: in sessions that it keeps for a while, in fresh ones, with
calls of another server's tools, and now and then one that fails, takes too long, prints much or is
given up. Descriptors, threads and memory of the server and its processes are noted while no run is
under way. The exit status is 1 if they have grown since the first tenth of the time.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).parents[2]
FAKE = ROOT / "tests/mcp/fake.py"
VERSION = "2026-07-28"
TOKEN = "a-token-of-the-soak-test"
KEPT = 40  # runs of a session before it is closed
CALLS = 10  # nested calls of a run
GROWTH = 1.1
ANSWER = 60  # seconds that an answer may take

PLAIN = "s = sum(fake.get_sum(i, {0}) for i in range(10))\ns"
MAPPED = "sum(fake.get_sum.map(range(10), [{0}] * 10))"
GATHERED = (
    "import asyncio\nt = [fake.get_sum(i, {0}) for i in range(10)]\nsum(await asyncio.gather(*t))"
)
FAILING = PLAIN + "\nfake.fail()"
LOUD = PLAIN + "\nprint('x' * 300_000)"
SLOW = "fake.get_sum.map(range(10), range(10))\nwhile True: pass"


class Client:
    """A client of the revision 2026-07-28 over HTTP."""

    def __init__(self, address, number):
        self.address, self.number = address, number
        self.session = None
        self.left = 0
        self.runs = self.calls = self.failures = 0

    def post(self, method, params, give_up=False):
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": f"soak{self.number}", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        body = json.dumps(message).encode()
        host, port = self.address
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"MCP-Protocol-Version: {VERSION}\r\nMcp-Method: {method}\r\n"
            f"Mcp-Name: {params['name']}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(self.address, timeout=ANSWER) as stream:
            stream.sendall(head.encode() + body)
            if give_up:
                return None
            answer = b"".join(iter(lambda: stream.recv(1 << 16), b""))
        text = answer.decode()
        found = re.findall(r'\{"jsonrpc".*\}', text)
        if not found or "result" not in (last := json.loads(found[-1])):
            raise RuntimeError(f"no result: {text[:500]}")
        return last["result"]

    def run(self, code, timeout=20, give_up=False):
        arguments = {"code": code, "timeout": timeout}
        if self.session:
            arguments["session"] = self.session
        params = {"name": "run_python", "arguments": arguments}
        result = self.post("tools/call", params, give_up)
        self.runs += 1
        self.calls += CALLS
        return result and result["structuredContent"]

    def step(self, number):
        """Makes one run, and checks what it gives."""
        if self.left == 0 and self.session:
            arguments = {"session": self.session}
            self.post("tools/call", {"name": "close_session", "arguments": arguments})
            self.session = None
        kind = number % 100
        expected = 45 + 10 * number
        if kind == 50:
            self.session, self.left = None, 0
            self.run(SLOW, give_up=True)
            return
        code = (PLAIN, MAPPED, GATHERED)[number % 3].format(number)
        if kind == 25:
            answer, status = self.run(FAILING.format(number)), "error"
        elif kind == 60:
            answer, status = self.run(SLOW, timeout=0.5), "timeout"
        elif kind == 75:
            answer, status = self.run(LOUD.format(number)), "ok"
            expected = None
        else:
            answer, status = self.run(code), "ok"
        if answer["status"] != status or (status == "ok" and answer["value"] != expected):
            self.failures += 1
            print(f"client {self.number}, run {number}: {answer}", file=sys.stderr)
        # Every tenth session serves one run only.
        if self.session is None and number % 10:
            self.session, self.left = answer["session"], KEPT
        elif self.session:
            self.left -= 1
            self.session = answer["session"]


def children(pid):
    found = [pid]
    for known in found:
        for task in pathlib.Path(f"/proc/{known}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def measure(pid):
    """Descriptors and threads of the server, its memory and that of all its processes in KiB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    threads, rss = (
        int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)[1]) for name in ("Threads", "VmRSS")
    )
    total = processes = 0
    for process in children(pid):
        try:
            rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1])
        processes += 1
    return {
        "fds": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": threads,
        "rss": rss,
        "pss": total,
        "processes": processes,
    }


def serve(isolet, directory):
    config = directory / "servers.json"
    server = {
        "command": sys.executable,
        "args": [str(FAKE)],
        "isolet": {"allow": ["get-sum", "fail"]},
    }
    config.write_text(json.dumps({"mcpServers": {"fake": server}}))
    token = directory / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    command = [isolet, "mcp", "--http", "127.0.0.1:0", "--token-file", str(token)]
    command += ["--config", str(config), "--max-sessions", "8", "--session-ttl", "60s"]
    paths = {"XDG_DATA_HOME": str(directory / "data")}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | paths)
    line = process.stderr.readline()
    host, port = re.search(r"http://([\d.]+):(\d+)/", line).groups()
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return process, (host, int(port))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("isolet")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--runs", type=int, default=10_000, help="of both clients together")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        process, address = serve(asked.isolet, pathlib.Path(directory))
        try:
            return soak(process, address, asked)
        finally:
            process.terminate()
            process.wait(ANSWER)


def soak(process, address, asked):
    clients = [Client(address, number) for number in range(2)]
    each, seconds = asked.runs // 2, asked.minutes * 60
    begin = time.monotonic()
    pauses = threading.Barrier(len(clients) + 1, timeout=10 * ANSWER)
    looks = 20

    def use(client):
        for number in range(each):
            if number % (each // looks) == 0:
                pauses.wait()
                pauses.wait()
            due = begin + seconds * number / each
            time.sleep(max(0, due - time.monotonic()))
            client.step(number)
        pauses.wait()
        pauses.wait()

    threads = [threading.Thread(target=use, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    seen = []
    for look in range(looks + 1):
        pauses.wait()
        # Runs that were given up end within the two seconds that they are granted.
        time.sleep(5 if look else 0)
        numbers = measure(process.pid)
        pauses.wait()
        seen.append(numbers)
        minutes = (time.monotonic() - begin) / 60
        runs, calls = (sum(getattr(c, name) for c in clients) for name in ("runs", "calls"))
        print(f"{minutes:5.1f} min, {runs} runs, {calls} calls: {numbers}", flush=True)
    for thread in threads:
        thread.join(ANSWER)
    failures = sum(client.failures for client in clients)
    grown = []
    for name in ("fds", "threads", "rss", "pss", "processes"):
        early = statistics.median(numbers[name] for numbers in seen[2:5])
        late = statistics.median(numbers[name] for numbers in seen[-3:])
        print(f"{name}: {early:.0f} early, {late:.0f} late, x{late / early:.2f}")
        if late > early * GROWTH + 2:
            grown.append(name)
    print(f"{failures} wrong answers; grown: {', '.join(grown) or 'nothing'}")
    return 1 if grown or failures else 0


if __name__ == "__main__":
    sys.exit(main())
