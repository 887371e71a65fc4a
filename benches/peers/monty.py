"""Monty, a Python of its own in Rust, in worker processes.

A pool of workers belongs to Monty: `pool` takes one that is kept there and may have served others, `session` starts one.
"""

import os
from importlib.metadata import version

import peer
import pydantic_monty


class Session:
    """A worker that is checked out of a pool, and the pool if nobody else uses it."""

    def __init__(self, pool, owned):
        # By default a session may call the host 1000 times.
        self.checkout = pool.checkout(limits={"max_suspensions": 1 << 30})
        self.feed_run = self.checkout.__enter__().feed_run
        self.pool = pool if owned else None

    def close(self):
        self.checkout.__exit__(None, None, None)
        if self.pool:
            self.pool.__exit__(None, None, None)


class Monty(peer.Peer):
    def __init__(self):
        self.shared = pydantic_monty.Monty(max_processes=8).__enter__()

    def open(self):
        return Session(self.shared, owned=False)

    def open_new(self):
        return Session(pydantic_monty.Monty().__enter__(), owned=True)

    def session(self):
        return self.first_result(self.open_new)

    def pool(self):
        return self.first_result(self.open)

    def close(self, session):
        session.close()

    def copy(self, session):
        copy = self.open()
        copy.checkout.load_session(session.checkout.dump())
        return copy

    def save_to(self, session, path):
        with open(path, "wb") as file:
            file.write(session.checkout.dump())
            file.flush()
            os.fdatasync(file.fileno())

    def restore_from(self, path):
        restored = self.open()
        restored.checkout.load_session(path.read_bytes())
        return restored

    def run(self, session, code):
        return session.feed_run(code, external_lookup={"f": lambda x: x})

    def give(self, session, name, value, code):
        return session.feed_run(code, inputs={name: value})

    def printed(self, session, code):
        printed = pydantic_monty.CollectString()
        session.feed_run(code, print_callback=printed)
        return printed.output


if __name__ == "__main__":
    peer.serve(f"pydantic-monty {version('pydantic-monty')}", Monty())
