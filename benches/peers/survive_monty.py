"""Monty, a subset of Python in worker processes, as a subject of `cargo xtask survival`."""

from importlib.metadata import version

import pydantic_monty
import survival


class Monty(survival.Survivor):
    def __init__(self):
        self.pool = pydantic_monty.Monty(max_processes=2).__enter__()

    def open(self, seconds, packages):
        limits = {"max_suspensions": 1 << 30, "max_feed_duration_secs": seconds, "max_memory": 512 << 20}
        checkout = self.pool.checkout(limits=limits)
        return checkout, checkout.__enter__()

    def run(self, session, code):
        printed = pydantic_monty.CollectString()
        value = session[1].feed_run(code, print_callback=printed)
        return f"{printed.output}{value!r}"

    def kept(self, session):
        return session[1].feed_run("kept + 1") == 42

    def close(self, session):
        session[0].__exit__(None, None, None)


if __name__ == "__main__":
    survival.serve(f"pydantic-monty {version('pydantic-monty')}", Monty())
