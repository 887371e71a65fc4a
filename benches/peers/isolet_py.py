"""isolet from Python: the package `isolet`, from this repository, with the command that was built."""

import isolet
import peer


def f(x):
    return x


class Isolet(peer.Peer):
    def __init__(self):
        self.sandbox = isolet.Sandbox(tools=[f])

    def open(self):
        return self.sandbox.session()

    def pool(self):
        # A sandbox of its own, so that `session` finds none that is ready.
        if not hasattr(self, "ready"):
            self.ready = isolet.Sandbox(limits=isolet.Limits(memory_bytes=900 << 20))
        self.ready.prewarm(2)
        return self.first_result(self.ready.session)

    def original(self, make):
        # A session that can be forked starts in another way, so the others are not.
        if not hasattr(self, "forkable"):
            self.forkable = isolet.Sandbox(forkable=peer.IDLE_SESSIONS + 2)
        self.open, other = self.forkable.session, self.open
        try:
            return super().original(make)
        finally:
            self.open = other

    def copy(self, session):
        return session.fork()

    def close(self, session):
        session.close()

    def run(self, session, code):
        return session.run(code).raise_for_error().value

    def give(self, session, name, value, code):
        return session.run(code, inputs={name: value}).value

    def printed(self, session, code):
        return session.run(code).stdout

    def memory(self):
        # One of these brings the process that further ones are copied from, which takes a moment.
        first = [self.open() for _ in range(8)]
        for session in first:
            self.run(session, "40+2")
        took = super().memory()
        for session in first:
            self.close(session)
        return took


if __name__ == "__main__":
    peer.serve(f"isolet {isolet.__version__} from Python", Isolet())
