"""Whole programs: where they begin, and those that are no cell but a module, a directory or an
archive.
"""

import os
import sys


def search_environment(variables):
    """Lets `PYTHONPATH` do what it does for python: its entries come after that of the program."""
    entries = [entry for entry in variables.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[1:1] = entries


def place(command):
    """Starts a run in its directory, and has it import from where its program lies first."""
    if "directory" in command:
        os.chdir(command["directory"])
    if "import_from" in command:
        search(command["import_from"])


def search(directory):
    """Makes this directory the first to import from, as python does with that of the program."""
    if sys.path[:1] == [""]:
        del sys.path[0]  # the working directory, which is searched without a program
    if directory not in sys.path[:1]:
        sys.path.insert(0, directory)


def run_module(name, namespace):
    """Runs a module as `python -m NAME` does."""
    import runpy

    try:
        _, spec, code = runpy._get_module_details(name, runpy._Error)
    except runpy._Error as error:
        sys.exit(f"isolet: {error}")
    sys.argv[:1] = [spec.origin]
    run_main(code, spec, namespace)


def run_application(path, namespace):
    """Runs the `__main__.py` of a directory or a zip file, as `python PATH` does."""
    import runpy

    search(path)
    try:
        _, spec, code = runpy._get_main_module_details(runpy._Error)
    except runpy._Error as error:
        sys.exit(f"isolet: {error}")
    run_main(code, spec, namespace)


def run_main(code, spec, namespace):
    """Runs the code of a module as `__main__`."""
    namespace.update(
        __name__="__main__",
        __file__=spec.origin,
        __cached__=spec.cached,
        __doc__=None,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
    )
    exec(code, namespace)


STARTS = {"module": run_module, "application": run_application}
