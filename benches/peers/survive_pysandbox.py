"""pysandbox-wasi, CPython on wasmtime in a process that all workers share, as a subject of `cargo xtask survival`."""

import asyncio
from importlib.metadata import version

import pysandbox
import survival

# A worker's functions run in the namespace that keeps its variables.
PROGRAM = """
import sys

def run_cell(code):
    try:
        exec(code, globals())
    finally:
        sys.stdout.flush()

def evaluate(code):
    return eval(code, globals())
"""
MEMORY = 512 << 20
OUTPUT = 64 << 20


class Pysandbox(survival.Survivor):
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.runtime = pysandbox.PythonRuntime()

    def open(self, seconds, packages):
        return self.loop.run_until_complete(self.start()), seconds

    async def start(self):
        limits = pysandbox.RuntimeLimits(max_memory_bytes=MEMORY, max_output_bytes=OUTPUT)
        worker = self.runtime.run(PROGRAM, limits=limits)
        # The first start of all compiles, which no run's limit is to include.
        await worker.call(("run_cell",), None, "")
        return worker

    def run(self, session, code):
        return self.loop.run_until_complete(self.call(*session, code))

    async def call(self, worker, seconds, code):
        await worker.set_limits(timeout=seconds)
        printed = len(worker.result.output.text)
        await worker.call(("run_cell",), None, code)
        return worker.result.output.text[printed:]

    def kept(self, session):
        worker = session[0]
        return self.loop.run_until_complete(worker.call(("evaluate",), None, "kept + 1")) == 42

    def close(self, session):
        self.loop.run_until_complete(session[0].close())


if __name__ == "__main__":
    survival.serve(f"pysandbox-wasi {version('pysandbox-wasi')}", Pysandbox())
