"""Imports of packages that are allowed but not loaded: the host loads them, the import goes on."""

import contextlib
import importlib
import importlib.machinery
import sys

import _isolet_imports as imports
import _isolet_tools as tools
import _isolet_waits as waits
from pyodide.ffi import can_run_sync

# What packages import only when they are used: to show or write a table, to draw a figure.
FIRST_USED = {
    "pandas": [f"pandas.io.formats.{name}" for name in ("string", "csvs", "html")],
    "matplotlib.pyplot": [
        "matplotlib.backends.backend_agg",
        *(f"PIL.{name}ImagePlugin" for name in ("Bmp", "Gif", "Jpeg", "Png", "Ppm")),
    ],
}

bridge = None


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def start(has_packages):
    """Has imports that fail ask the host, if it has anything to answer with."""
    if has_packages and not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(-1, Finder())  # before the stand-ins for what nobody has


def look_again():
    """Has imports look into directories again, which may be others now. The archive with the
    standard library, which takes long to look into, is the same.
    """
    for finder in list(sys.path_importer_cache.values()):
        if isinstance(finder, importlib.machinery.FileFinder):
            finder.invalidate_caches()


def import_first_used():
    """Imports what the first table that is shown, or the first figure, would import."""
    for package, names in FIRST_USED.items():
        if package in sys.modules:
            for name in names:
                with contextlib.suppress(Exception):  # another version may not have it
                    importlib.import_module(name)


def load(name):
    """Has the host load what it allows, if that has a package of this name."""
    for finder in sys.meta_path:
        if isinstance(finder, Finder):
            finder.load(name)


def loaded():
    """Says that the host has put something into the packages' directory."""
    importlib.invalidate_caches()


class Finder:
    """Asked for a module that no directory has."""

    def find_spec(self, name, path=None, target=None):
        if path is not None or not self.load(name):
            return None
        return imports.find_spec(name, path, target)

    def load(self, name):
        """Asks the host for the package of a module, or of this name; whether it loaded any."""
        if not can_run_sync():
            return False
        call = bridge.import_package(name)
        try:
            size = waits.answered(call)
        except BaseException:
            bridge.cancel(call)
            raise
        if not tools.take(call, size):
            return False
        loaded()
        return True
