"""What calls of the Python package take, as `client.mjs` measures it: python benches/client.py"""

import statistics
import time

import isolet

ROUNDS = 15


def measure(title, operations, work):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work(operations)
        times.append((time.perf_counter() - start) / operations * 1e3)
    print(f"{title}: {statistics.median(times):.3f} ms")


def main():
    sandbox = isolet.Sandbox(tools={"echo": lambda value: value})
    with sandbox.session() as session:
        session.run("def calls(n):\n    for i in range(n): echo(i)")
        text = "x" * (1 << 20)

        def sessions(n):
            for _ in range(n):
                with sandbox.session() as each:
                    each.run("40 + 2")

        measure("a run", 300, lambda n: [session.run("40 + 2") for _ in range(n)])
        measure("a tool call", 1000, lambda n: session.run(f"calls({n})"))
        measure(
            "1 MiB to the guest",
            10,
            lambda n: [session.run("None", inputs={"text": text}) for _ in range(n)],
        )
        measure("1 MiB from the guest", 10, lambda n: [session.get("text") for _ in range(n)])
        measure("a session and a run", 20, sessions)


main()
