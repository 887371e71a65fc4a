"""Makes the interpreters under test: DSPy's own `PythonInterpreter`, on isolet in two ways or on the real Deno.

ISOLET_DSPY_MODE says which:

command  `deno_command=[ISOLET_BIN, "dspy"]`; the default
shim     plain `PythonInterpreter()`, because the `deno` that is first on PATH is isolet
deno     plain `PythonInterpreter()` on the real Deno, by hand, to check that the expectations are right;
         ISOLET_DSPY_RUNNER may name a copy of DSPy's runner.js to use
"""

import faulthandler
import os
import shutil
import unittest

import dspy
from dspy.primitives.code_interpreter import CodeExecutionError, CodeInterpreterError, FinalOutput

__all__ = ["MODE", "Case", "CodeExecutionError", "CodeInterpreterError", "FinalOutput", "better", "make"]

MODE = os.environ.get("ISOLET_DSPY_MODE", "command")
BIN = os.environ.get("ISOLET_BIN", "")

# DSPy waits for its interpreter for ever. This only turns a wait without an end into a failure.
faulthandler.dump_traceback_later(1200, exit=True)


class _OnDeno(dspy.PythonInterpreter):
    """DSPy's interpreter, with the runner that the caller chose."""

    def _get_runner_path(self):
        return os.environ.get("ISOLET_DSPY_RUNNER") or super()._get_runner_path()


def make(**options):
    """Makes an interpreter with PythonInterpreter's own options; without any, it is a factory for DSPy's modules."""
    if MODE == "deno":
        return _OnDeno(**options)
    if MODE == "shim":
        _check_that_deno_is_isolet()
        return dspy.PythonInterpreter(**options)
    if MODE == "command":
        return dspy.PythonInterpreter(deno_command=[BIN, "dspy"], **options)
    raise ValueError(f"ISOLET_DSPY_MODE is {MODE!r}, and has to be 'command', 'shim' or 'deno'")


def _check_that_deno_is_isolet():
    # Without this, a real Deno on this machine would pass these tests.
    found = dspy.PythonInterpreter().deno_command[0]
    first = shutil.which("deno")
    assert first and os.path.realpath(first) == os.path.realpath(BIN), f"the first `deno` on PATH is {first}"
    assert os.path.realpath(found) == os.path.realpath(BIN), f"DSPy takes the Deno of a Python package, {found}"


def better(why):
    """Marks a test of what isolet does and the original does not; `why` says what that does instead."""
    return unittest.skipIf(MODE == "deno", f"on Deno: {why}")


class Case(unittest.TestCase):
    """A test with interpreters that end with it, and one for all tests of its class."""

    maxDiff = 2000
    _shared = None

    def interpreter(self, **options):
        interpreter = make(**options)
        self.addCleanup(interpreter.shutdown)
        return interpreter

    @property
    def shared(self):
        """The interpreter of the whole class, without tools: for tests that leave nothing behind."""
        cls = type(self)
        # One test that ends it should not fail the others.
        if cls._shared is None or cls._shared._session_ended:
            cls._shared = make()
            cls.addClassCleanup(cls._shared.shutdown)
        return cls._shared

    def assertSame(self, got, wanted, note=None):
        """Equal, and of equal types all the way down."""
        self.assertEqual(got, wanted, note)
        self.assertEqual(_types(got), _types(wanted), note)

    def assertAlive(self, interpreter):
        self.assertEqual(interpreter("40 + 2"), 42)
        self.assertEqual(interpreter("print('still here')"), "still here\n")

    def fails(self, interpreter, code, **options):
        """Runs code that has to fail in a way that the session survives, and returns what DSPy says of it."""
        with self.assertRaises(CodeExecutionError) as caught:
            interpreter(code, **options)
        self.assertAlive(interpreter)
        return str(caught.exception)


def _types(value):
    if isinstance(value, dict):
        return {key: _types(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_types(item) for item in value]
    return type(value).__name__
