"""Runs every task with direct calls and in code mode, and writes what it saw as JSON to a file.

measure.py --isolet PROGRAM --dir DIR --rounds N --latency MS… --out FILE

Nobody thinks in between: the times are those of servers, protocol and isolet. Answers that differ
fail the benchmark.
"""

import argparse
import base64
import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

from client import Client
from tasks import TASKS

HERE = Path(__file__).parent
CATALOGUES = HERE.parent.parent / "tests/mcp/catalogues"
ALL = sorted(path.stem for path in CATALOGUES.glob("*.json"))

# The calls of a server's tool by one program, whose time is divided by them.
NESTED_CALLS = 500

# The pixels of a token, as a vendor of models states it for its own.
PIXELS_PER_TOKEN = 750


class Different(Exception):
    """Says which answer is not the expected one."""


class Part:
    """What a part of a transcript adds to the model's context, and its turns."""

    def __init__(self):
        self.turns = 0
        self.calls = 0
        self.wrote = []
        self.read = []
        self.structured = []
        self.image_tokens = 0

    def write(self, name, arguments):
        self.calls += 1
        self.wrote.append(compact({"name": name, "arguments": arguments}))

    def see(self, result):
        for block in result["content"]:
            if block["type"] == "text":
                self.read.append(block["text"])
            elif block["type"] == "image":
                width, height = struct.unpack(">II", base64.b64decode(block["data"])[16:24])
                self.image_tokens += width * height // PIXELS_PER_TOKEN
        if "structuredContent" in result:
            self.structured.append(compact(result["structuredContent"]))

    def as_json(self):
        return {"turns": self.turns, "calls": self.calls, "image_tokens": self.image_tokens,
                "wrote": "\n".join(self.wrote), "read": "\n".join(self.read),
                "structured": "\n".join(self.structured)}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def nanoseconds(start):
    return time.perf_counter_ns() - start


def upstream(server, latency):
    # Without bytecode next to the sources, which isolet's small environment would not prevent.
    return [sys.executable, "-B", str(HERE / "upstream.py"), str(CATALOGUES / f"{server}.json"),
            str(latency)]


class Isolet:
    """How to start `isolet mcp`, with files of its own."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.environment = {**os.environ, "XDG_DATA_HOME": str(directory / "data"),
                            "XDG_CACHE_HOME": str(directory / "cache")}

    def start(self, servers, latency, **options):
        configuration = {}
        for server in servers:
            program, *arguments = upstream(server, latency)
            configuration[server] = {"command": program, "args": arguments}
        file = self.directory / "servers.json"
        file.write_text(json.dumps({"mcpServers": configuration}))
        common = ["--config", str(file), "--no-pin"]
        # What tools the servers have is then known, as it is from the second start on.
        subprocess.run([self.program, "mcp", "check", *common], env=self.environment, check=True,
                       timeout=120, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        rules = ["--ask-tool", "slack.slack_post_message"] if "slack" in servers else []
        for server in servers:
            rules += ["--allow-tool", f"{server}.*"]
        return Client([self.program, "mcp", *common, *rules], self.environment, **options)


def definition(tool):
    """Returns what clients give to a model of a tool's definition."""
    return {"name": tool["name"], "description": tool.get("description", ""),
            "input_schema": tool["inputSchema"]}


def definitions(isolet, servers):
    """Returns what is in the context before the first task."""
    direct = []
    for server in servers:
        direct += json.loads((CATALOGUES / f"{server}.json").read_text())["tools"]
    client = isolet.start(servers, 0)
    tools = client.tools()
    client.end()
    [about] = [tool["description"] for tool in tools if tool["name"] == "run_python"]
    module = servers[0].replace("-", "_")
    if f"\n{module}:\n  " in about:
        form = "signatures"
    else:
        form = "numbers" if about.endswith(" tools") else "names"
    return {
        "servers": servers,
        "tools": len(direct),
        "form": form,
        "direct": compact([definition(tool) for tool in direct]),
        "code": compact([definition(tool) for tool in tools]) + client.instructions,
    }


def direct(task, clients, approve, *, side_by_side):
    """Makes the calls of a task. Returns what the model wrote and read, the answer, and the time.

    Side by side, a turn has all calls that do not depend on each other.
    """
    part, steps, answer = Part(), task.direct(), None
    start = time.perf_counter_ns()
    try:
        calls = next(steps)
        while True:
            turns = [calls] if side_by_side else [[call] for call in calls]
            results = []
            for turn in turns:
                part.turns += 1
                results += together(turn, clients, approve)
            for call, result in zip(calls, results):
                part.write(call.tool, call.arguments)
                part.see(result)
            calls = steps.send(results)
    except StopIteration as end:
        answer = end.value
    return part, answer, nanoseconds(start)


def together(calls, clients, approve):
    """Makes calls at the same time, and returns their results."""
    begun = []
    for call in calls:
        if call.asks:
            # Here the client itself asks.
            approve(f"{call.server}.{call.tool} {compact(call.arguments)}")
        params = {"name": call.tool, "arguments": call.arguments}
        begun.append((call.server, clients[call.server].begin("tools/call", params)))
    results = {}
    for server in {server for server, _ in begun}:
        numbers = [number for of, number in begun if of == server]
        for number, result in zip(numbers, clients[server].answers(numbers)):
            results[server, number] = result
    return [results[one] for one in begun]


def code(program, client):
    """Runs a program. Returns what the model wrote and read, the answer, and the time."""
    part = Part()
    start = time.perf_counter_ns()
    result = client.call("run_python", {"code": program})
    took = nanoseconds(start)
    part.turns = 1
    part.write("run_python", {"code": program})
    part.see(result)
    structured = result["structuredContent"]
    if structured["status"] != "ok":
        raise Different(f"the program ends with {structured['error']}")
    images = [block["data"] for block in result["content"] if block["type"] == "image"]
    return part, images or structured["value"], took


def search(task, client):
    """Looks for the functions of a task, which have to be found."""
    part = Part()
    arguments = {"query": task.query}
    if len(task.servers) == 1:
        # The names of all functions are known, by server.
        arguments["server"] = task.servers[0].replace("-", "_")
    result = client.call("search_tools", arguments)
    part.turns = 1
    part.write("search_tools", arguments)
    part.see(result)
    for function in task.functions:
        if f"def {function}(" not in "".join(part.read):
            raise Different(f"`{task.query}` does not find {function}")
    return part


class Bench:
    """The tasks, and what was measured."""

    def __init__(self, isolet, rounds):
        self.isolet, self.rounds = isolet, rounds
        self.questions = []
        self.is_careful = False
        self.tasks = {task.name: {"times": []} for task in TASKS}

    @contextlib.contextmanager
    def clients(self, latency):
        """Starts every server, and isolet with all of them, in both ways to ask the user."""
        with contextlib.ExitStack() as ended, open(self.isolet.directory / "log", "w") as log:
            def started(client):
                ended.callback(client.end)
                return client

            used = {server for task in TASKS for server in task.servers}
            servers = {server: started(Client(upstream(server, latency))) for server in used}
            options = {"approve": self.questions.append, "log": log}
            old = started(self.isolet.start(ALL, latency, **options))
            new = started(self.isolet.start(ALL, latency, modern=True, **options))
            yield servers, old, new

    def run(self, latency):
        with self.clients(latency) as (servers, old, new):
            if not self.is_careful:
                self.is_careful = True
                for task in TASKS:
                    self.careful(task, old)
            for number in range(self.rounds + 1):
                print(f"latency {latency} ms, round {number} of {self.rounds}", file=sys.stderr)
                for task in TASKS:
                    times = self.round(task, servers, old, new)
                    # Round 0 warms up.
                    if number:
                        self.note(task, latency, times)

    def note(self, task, latency, times):
        rows = self.tasks[task.name]["times"]
        if not rows or rows[-1]["latency"] != latency:
            rows.append({"latency": latency, **{name: [] for name in times}})
        for name, took in times.items():
            rows[-1][name].append(took)

    def careful(self, task, client):
        """Notes what a model does before the program, if it does not know the functions."""
        about = self.tasks[task.name]
        about["search"] = search(task, client).as_json()
        about["look"] = code(task.look, client)[0].as_json() if task.look else None

    def round(self, task, servers, old, new):
        """Runs a task in each way. Returns the times."""
        self.questions.clear()
        asked = self.questions.append
        one, expected, took_one = direct(task, servers, asked, side_by_side=False)
        many, answer, took_many = direct(task, servers, asked, side_by_side=True)
        part, value, took = code(task.program, old)
        _, value_new, took_new = code(task.program, new)
        answers = [json.dumps(answer) for answer in (expected, answer, value, value_new)]
        if not expected or len(set(answers)) != 1:
            raise Different(f"{task.name} has different answers: {[a[:200] for a in answers]}")
        if len(self.questions) not in (0, 4):
            raise Different(f"{task.name} asked the user {len(self.questions)} times in 4 runs")
        about = self.tasks[task.name]
        about["turns_one_by_one"] = one.turns
        about["direct"], about["code"] = many.as_json(), part.as_json()
        return {"one_by_one": took_one, "side_by_side": took_many, "code": took,
                "code_modern": took_new}

    def nested(self):
        """Returns the times of one call, direct and by a program."""
        address = {"address": "Stephansplatz 1, Vienna"}
        program = "import google_maps\n"
        calls = (f"for _ in range({NESTED_CALLS}):\n"
                 f"    google_maps.maps_geocode(address={address['address']!r})")
        times = {"direct": [], "code": []}
        with self.clients(0) as (servers, old, _):
            for number in range(self.rounds + 1):
                start = time.perf_counter_ns()
                for _ in range(NESTED_CALLS):
                    servers["google-maps"].call("maps_geocode", address)
                took_direct = nanoseconds(start)
                took = code(program + calls, old)[2] - code(program, old)[2]
                if number:
                    times["direct"].append(took_direct // NESTED_CALLS)
                    times["code"].append(took // NESTED_CALLS)
        return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--isolet", required=True)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--latency", type=int, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    # What isolet knew of the servers from an earlier run would be in what the model reads.
    shutil.rmtree(options.dir, ignore_errors=True)
    options.dir.mkdir(parents=True)
    isolet = Isolet(options.isolet, options.dir)
    bench = Bench(isolet, options.rounds)
    try:
        sets = [list(one) for one in dict.fromkeys(tuple(task.servers) for task in TASKS)]
        known = [definitions(isolet, servers) for servers in [*sets, ALL]]
        for latency in options.latency:
            bench.run(latency)
        nested = bench.nested()
    except (Different, TimeoutError, ConnectionError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    tasks = [
        {"name": task.name, "what": task.what, "servers": task.servers, "small": task.is_small,
         **bench.tasks[task.name]}
        for task in TASKS
    ]
    seen = {"definitions": known, "tasks": tasks, "nested": nested}
    options.out.write_text(json.dumps(seen))


if __name__ == "__main__":
    main()
