"""Cells in the language of the shell, which share directory and environment with Python's."""

import contextlib
import os
import re

import _isolet_shell as system_shell

# What a shell sets for itself.
OWN_VARIABLES = ("_", "OLDPWD", "PWD", "SHLVL")
# Brings a shell to a directory and an environment: names to remove, then assignments.
UPDATE = """cd -- "$1" && shift
while [ "$1" != = ]; do unset -v "$1"; shift; done; shift
[ $# -eq 0 ] || export -- "$@"
"""

# What bash says of a script that goes on in another line.
UNFINISHED = ("unexpected end of file", "unexpected EOF", "unterminated")
CONTINUED = re.compile(r"(?:(?<!\\)(?:\\\\)*\\|&&|\||\w=\([^)]*)\s*\Z")
HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")

kept = None  # the shell of the session's cells
known = None  # its directory and environment when it was last seen
python_directory = None  # where Python was then


def run(command, variables):
    """Runs a cell, which exits with the status of its script."""
    name, *arguments = command["argv"] or [""]
    name = name or "bash"
    stdin = system_shell.inherited() if command["stdin"] else b""
    script, variables = command["code"], {name: str(variables[name]) for name in variables}
    if command["role"] == "program":
        status = system_shell.run(
            script,
            arguments,
            name,
            stdin=stdin,
            env={**os.environ, **variables},
            cwd=command.get("directory"),
        )
    else:
        if "directory" in command:
            os.chdir(command["directory"])
        os.environ.update(variables)
        status = run_kept(script, arguments, name, stdin)
    raise SystemExit(status)


def run_kept(script, arguments, name, stdin):
    """Runs a script in the shell that the cells share."""
    global known
    current_shell()
    if known["status"] and "$?" in script:
        script = f"(exit {known['status']}); {script}"
    request = {"script": script, "name": name, "args": arguments}
    try:
        return system_shell.drive(kept, request, stdin, (1, 2), system_shell.Control())
    finally:
        known = system_shell.state(kept)
        adopt()


def current_shell():
    """Begins the shell, if it is not there, or tells it what Python has changed."""
    global kept, known
    directory, variables = os.getcwd(), dict(os.environ)
    if known is not None and system_shell.state(kept) == known:
        update(directory, variables)
        return
    kept = system_shell.begin(directory, variables)
    known = system_shell.state(kept)


def update(directory, variables):
    own = exported(known)
    removed = [name for name in own if name not in variables]
    names = [name for name in variables if own.get(name) != variables[name]]
    changed = [f"{name}={variables[name]}" for name in names]
    if directory == python_directory:
        directory = known["cwd"]  # perhaps one that only the shell has
    if directory == known["cwd"] and not removed and not changed:
        return
    request = {"script": UPDATE, "name": "bash", "args": [directory, *removed, "=", *changed]}
    system_shell.drive(kept, request, b"", (1, 2), system_shell.Control())


def adopt():
    """Has Python see where the shell is, and its environment."""
    global python_directory
    if known is None:
        return
    if known["cwd"] != os.getcwd():
        with contextlib.suppress(OSError):  # the shell has some directories of its own
            os.chdir(known["cwd"])
    python_directory = os.getcwd()
    own, before = exported(known), dict(os.environ)
    for name in before.keys() - own.keys():
        if name not in OWN_VARIABLES:
            del os.environ[name]
    for name in own:
        if before.get(name) != own[name]:
            os.environ[name] = own[name]


def exported(state):
    env = state["env"]
    return {name: env[name] for name in env if name not in OWN_VARIABLES}


def is_whole(script):
    """Whether bash would not ask for another line."""
    if CONTINUED.search(script):
        return False
    lines = script.split("\n")
    for found in HERE_DOCUMENT.finditer(script):
        after = lines[script.count("\n", 0, found.start()) + 1 :]
        if not any(line.strip("\t") == found[2] for line in after):
            return False
    reading, writing = os.pipe()
    try:
        system_shell.run("bash -n", stdin=script.encode(), out=writing, err=writing)
        said = system_shell.read_all(reading).decode(errors="replace")
    finally:
        os.close(reading)
        os.close(writing)
    return not any(text in said for text in UNFINISHED)
