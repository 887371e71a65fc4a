"""Runs one module of CPython's tests and writes what became of each test.

Arguments: the directory in which `test` lies, the name of the module, the file to write to, and how
many of the module's tests are to be left out at its beginning, because an earlier session ran them.
Each line of the file is an object: that a test has started, how it ended, or that the module is
done. A line is written at once, so that the lines of a session that dies say which test it died in.
"""

import importlib
import json
import os
import sys
import traceback
import unittest

# Tests replace such functions; these are what they were before.
_open, _write, _close, _encode = os.open, os.write, os.close, json.JSONEncoder().encode
_exit, _format_exception = os._exit, traceback.format_exception

# What tests ask for beyond a quick processor and memory. Not: cpu, network, files of gigabytes.
RESOURCES = ["decimal", "tzdata"]

# As much of a reason as a person reads.
MAX_REASON = 2000


def write(file, **line):
    """Appends a line. The file is opened for each, because tests close what is open."""
    data = (_encode(line) + "\n").encode("utf-8", "replace")
    descriptor = _open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        _write(descriptor, data)
    finally:
        _close(descriptor)


def reason_of(error):
    """The end of the traceback: what was raised is its last line."""
    try:
        return "".join(_format_exception(*error))[-MAX_REASON:]
    except Exception as another:
        return f"{error[0].__name__}, and its traceback raised {another!r}"


class Reporter(unittest.TestResult):
    """Writes one line for the start of a test and one for its end."""

    def __init__(self, file, places):
        super().__init__()
        self.file, self.places = file, places
        self.open = None
        self.outcome = self.reason = None

    def startTest(self, test):
        super().startTest(test)
        self.open, self.outcome, self.reason = test, None, None
        write(self.file, start=self.places.get(id(test), -1), id=test.id())

    def stopTest(self, test):
        self.open = None
        # A test that an interrupt has ended has no outcome, and counts as one that the session
        # ended in.
        if self.outcome is not None:
            write(self.file, id=test.id(), outcome=self.outcome, reason=self.reason)
        super().stopTest(test)
        # Nobody looks at them again, and what they refer to can be much.
        self.failures.clear(), self.errors.clear(), self.skipped.clear()

    def _note(self, test, outcome, reason):
        if self.open is None:
            # Not a test, but what comes before or after all of a class or module.
            write(self.file, id=test.id(), outcome=outcome, reason=reason)
        elif self.outcome in (None, "ok", "skipped"):
            self.outcome, self.reason = outcome, reason

    def addError(self, test, error):
        self._note(test, "error", reason_of(error))

    def addFailure(self, test, error):
        self._note(test, "failed", reason_of(error))

    def addSubTest(self, test, subtest, error):
        if error is not None:
            outcome = "failed" if issubclass(error[0], test.failureException) else "error"
            self._note(test, outcome, f"{subtest._subDescription()}\n{reason_of(error)}")

    def addUnexpectedSuccess(self, test):
        self._note(test, "failed", "it is expected to fail, and did not")

    def addSkip(self, test, reason):
        # A part of a test that is skipped leaves the rest of it.
        if self.open is None or self.open is test:
            self._note(test, "skipped", str(reason))

    def addSuccess(self, test):
        self.outcome = self.outcome or "ok"

    def addExpectedFailure(self, test, error):
        self.addSuccess(test)


def numbered(suite, first, places):
    """The suite without its first tests, and in `places` the number of each of the others."""
    count = 0

    def walk(suite):
        nonlocal count
        kept = []
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                walk(test)
                kept.append(test)
            else:
                if count >= first:
                    kept.append(test)
                    places[id(test)] = count
                count += 1
        suite._tests = kept

    walk(suite)
    return suite


def run(module, file, first):
    try:
        suite = load(module)
    except unittest.SkipTest as skip:
        write(file, module="skipped", reason=str(skip))
        return
    except BaseException as error:
        write(file, module="error", reason=reason_of((type(error), error, error.__traceback__)))
        return
    places = {}
    suite = numbered(suite, first, places)
    try:
        suite.run(Reporter(file, places))
    except unittest.SkipTest as skip:
        write(file, module="skipped", reason=str(skip))
        return
    write(file, module="done")


def load(name):
    # A module that is to be skipped says so when it is imported, where the loader looks for other
    # exceptions.
    importlib.import_module(f"test.{name}")
    return unittest.defaultTestLoader.loadTestsFromName(f"test.{name}")


def main():
    above, module, file, first = sys.argv[1:]
    sys.argv[1:] = []
    sys.path.insert(0, above)
    os.makedirs("/tmp/cwd", exist_ok=True)
    os.chdir("/tmp/cwd")
    from test import support

    support.use_resources = RESOURCES
    support.verbose = 0
    run(module, file, int(first))
    # What tests have left running is not waited for.
    _exit(0)


main()
