"""Says why parts of the standard library are missing, and adapts those that miss what they need."""

import sys

import _isolet_foreign as foreign

WINDOWS = "a guest has no windows; matplotlib draws pictures"
TERMINAL = "a guest has no terminal to draw on"
PROCESSES = "a guest has no processes; multiprocessing.pool.ThreadPool and threading work"
PACKAGES = "a guest installs nothing; its packages are the host's to give"

WHY = {
    **dict.fromkeys(("tkinter", "_tkinter", "turtle", "turtledemo", "idlelib"), WINDOWS),
    **dict.fromkeys(("curses", "_curses", "readline"), TERMINAL),
    **dict.fromkeys(("_multiprocessing", "_posixshmem"), PROCESSES),
    **dict.fromkeys(("ensurepip", "venv"), PACKAGES),
}
IMPORT = "_find_and_load_unlocked"  # asks a finder's caller, if a module is to be loaded


def install(patches):
    """Has these imports say so, if nothing else has the modules, and others do what they can."""
    sys.meta_path.append(Finder())
    patches["ctypes"] = foreign.patch
    patches["webbrowser"] = patch_webbrowser
    sys.executable = sys._base_executable = "/usr/bin/python3"  # a command of the shell


class Finder:
    """Asked for a module that nobody has."""

    def find_spec(self, name, path=None, target=None):
        # Whoever only looks whether there is such a module is told that there is none.
        if name in WHY and sys._getframe(2).f_code.co_name == IMPORT:
            raise ModuleNotFoundError(f"No module named {name!r}: {WHY[name]}", name=name)
        return None


def patch_webbrowser(module):
    """There is no browser, which CPython's says by the result."""

    def open(url, new=0, autoraise=True):
        return False

    module.open = open
