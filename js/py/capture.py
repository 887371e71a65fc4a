"""What code prints and displays, kept instead of shown."""

import contextlib
import io
import sys

import _isolet_displays as displays


class CapturedIO:
    """The output that was captured."""

    def __init__(self):
        self._stdout, self._stderr, self._outputs = io.StringIO(), io.StringIO(), []

    @property
    def stdout(self):
        return self._stdout.getvalue()

    @property
    def stderr(self):
        return self._stderr.getvalue()

    @property
    def outputs(self):
        return [RichOutput(formats) for formats in self._outputs]

    def show(self):
        """Prints and displays it after all."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for formats in self._outputs:
            displays.send(formats)

    __call__ = show

    def __str__(self):
        return self.stdout


class RichOutput:
    """A display that was captured."""

    def __init__(self, data=None, metadata=None, transient=None, update=False):
        self.data, self.metadata = data or {}, metadata or {}

    def display(self):
        displays.send(self.data)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.data

    def __repr__(self):
        return self.data.get(displays.PLAIN, "<RichOutput>")


@contextlib.contextmanager
def capture_output(stdout=True, stderr=True, display=True):
    """Captures what is printed and displayed within the block."""
    kept = CapturedIO()
    with contextlib.ExitStack() as stack:
        if stdout:
            stack.enter_context(contextlib.redirect_stdout(kept._stdout))
        if stderr:
            stack.enter_context(contextlib.redirect_stderr(kept._stderr))
        if display:
            stack.enter_context(displays.kept_in(kept._outputs))
        yield kept
