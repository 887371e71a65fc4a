"""A program that records a session or resumes one, and that `test_durable.py` kills.

    python durable_child.py API STEP DIRECTORY STOP

It keeps the journal, the calls of its tools and its output in DIRECTORY. In the call STOP it says
so on the standard output, and then waits for something that never comes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import isolet
from isolet import aio

API, STEP, DIRECTORY, STOP = sys.argv[1:]
JOURNAL = Path(DIRECTORY, "run.journal")

PROGRAM = """
import random, time
print(greeting, random.random(), time.time())
for n in range(3):
    print("look", look(n))
    try:
        print("act", act(n))
    except RuntimeError as error:
        print(type(error).__name__)
print("end", random.random())
total = n
"""


def note(file: str, text: str) -> None:
    with Path(DIRECTORY, file).open("a") as opened:
        opened.write(text)


def served(name: str, n: int) -> int:
    note("calls", f"{name} {n} {isolet.call_id()}\n")
    if f"{name} {n}" == STOP:
        print("stopped", flush=True)
        sys.stdin.read()
    return n * 10


@isolet.tool(idempotent=True)
def look(n: int) -> int:
    return served("look", n)


def act(n: int) -> int:
    return served("act", n)


async def act_in_a_thread(n: int) -> int:
    return await asyncio.to_thread(served, "act", n)


def shown(text: str) -> None:
    note(f"{STEP}.out", text)


def synchronous(tools: dict[str, Any]) -> isolet.Execution:
    if STEP == "resume":
        return isolet.resume(JOURNAL, tools=tools, on_stdout=shown)
    inputs = {"greeting": "hello"}
    if API == "run":
        return isolet.run(PROGRAM, inputs=inputs, tools=tools, journal=JOURNAL)
    with isolet.Sandbox(tools=tools).session() as session:
        session.run("opened = True")
        return session.run(PROGRAM, inputs=inputs, journal=JOURNAL, on_stdout=shown)


async def asynchronous(tools: dict[str, Any]) -> isolet.Execution:
    if STEP == "resume":
        return await aio.resume(JOURNAL, tools=tools, on_stdout=shown)
    journal = isolet.Journal(JOURNAL, sync=True)
    async with aio.Sandbox(tools=tools).session(journal=journal) as session:
        return await session.run(PROGRAM, inputs={"greeting": "hello"}, on_stdout=shown)


def main() -> None:
    other: Callable[..., Any] = act_in_a_thread if API == "aio" else act
    tools = {"look": look, "act": other}
    execution = asyncio.run(asynchronous(tools)) if API == "aio" else synchronous(tools)
    print(json.dumps({"stdout": execution.stdout, "failure": execution.failure}))


main()
