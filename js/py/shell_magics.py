"""Commands of IPython that a shell carries out, and those that install packages."""

import re
import shlex
import sys

import _isolet_packages as packages
import _isolet_shell_commands as commands
import _isolet_shell as system_shell
from _isolet_interactive_shell import SList, magic, shell

PIP = re.compile(
    r"(?:(?:uv )?pip3?|conda|mamba|micromamba|(?:python3?|\{sys\.executable\}|\S*/python\S*)"
    r" +-m +pip)(?: +(?P<verb>[a-z]+)(?P<rest>.*))?$"
)
REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(?:[<>=!~;@].*)?$")
WITH_VALUE = ("-i", "--index-url", "--extra-index-url", "-c", "--constraint", "-f", "-t", "-n")
# Those that read a script, and those that are a command of the shell by themselves.
SHELLS = ("bash", "sh")
PROGRAMS = ("python", "python3", "perl", "ruby", "pypy", "python2")
COMMANDS = (
    *("ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "ll", "lf", "ldir", "man", "less", "more"),
)
LISTINGS = {"ll": "ls -l", "lf": "ls -l", "ldir": "ls -ld */", "less": "cat", "more": "cat"}


def told(text):
    print(text, file=sys.stderr)


def system(line):
    """Runs a command of a shell, or says what becomes of packages."""
    line = line.strip()
    found = PIP.match(line)
    if found is not None:
        shell.user_ns["_exit_code"] = pip(f"!{line}", found["verb"], found["rest"] or "")
    else:
        shell.user_ns["_exit_code"] = system_shell.run(line)


def output_of(script):
    """Runs a script and returns what it prints; its errors go where the cell's do."""
    status, out = system_shell.output_of(script)
    shell.user_ns["_exit_code"] = status
    return out


@magic("system", "sx", "!", kind="line_cell")
def sx(line, cell=None):
    """Runs a command of a shell, and returns the lines that it prints."""
    return SList(output_of("\n".join([line, cell or ""])).splitlines())


def running(name):
    """A command that runs as it is, with the arguments of its line, and reads its cell."""

    def run(line, cell=None):
        stdin = (cell or "").encode()
        if name in SHELLS and cell is not None:
            status = system_shell.run(cell, shlex.split(line), name)
        else:
            reads = " -" if name in PROGRAMS and cell else ""
            status = system_shell.run(f"{LISTINGS.get(name, name)} {line}{reads}", stdin=stdin)
        shell.user_ns["_exit_code"] = status

    return run


@magic("script", kind="cell")
def script(line, cell):
    """Runs a cell by a program."""
    shell.user_ns["_exit_code"] = system_shell.run(line, stdin=cell.encode())


NAMES = {name: running(name) for name in (*SHELLS, *PROGRAMS, *COMMANDS)}


@magic("pip", "conda", "mamba", "micromamba", "uv")
def pip_(line):
    """Installs packages, if the session may have them."""
    verb, _, rest = line.strip().removeprefix("pip ").partition(" ")
    shell.user_ns["_exit_code"] = pip(f"%pip {line.strip()}", verb, rest)


def pip(shown, verb, rest):
    """Does what there is to be done, and says why no more; the status of its end."""
    from importlib import metadata

    if verb in ("list", "freeze"):
        found = {found.name: found.version for found in metadata.distributions()}
        print(*(f"{name}=={version}" for name, version in sorted(found.items())), sep="\n")
        return 0
    if verb != "install":
        told(f"`{shown}`: there is no pip here; only `install`, `list` and `freeze` are known")
        return 1
    missing = []
    for word in wanted_packages(rest):
        name = REQUIREMENT.match(word)
        if name is not None and is_loaded(name[1], metadata):
            version = metadata.version(name[1])
            print(f"Requirement already satisfied: {word} ({version})")
        else:
            missing.append(word)
    if missing:
        told(
            f"`{shown}`: {', '.join(missing)} cannot be installed by code: the packages of a "
            f"session are chosen where it is started, by `--with NAME` or `packages`"
        )
    return int(bool(missing))


def wanted_packages(rest):
    try:
        words = shlex.split(rest, comments=True)
    except ValueError:
        words = rest.split()
    found, takes_value = [], False
    for word in words:
        if takes_value or word.startswith("-"):
            takes_value = not takes_value and word in WITH_VALUE
        elif word in ("&&", ";", "|", ">", ">>", "2>&1"):
            break
        else:
            found.append(word)
    return found


def is_loaded(name, metadata):
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        packages.load(name)
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            return False
    return True


def pip_command(arguments):
    """`pip`, as a command of the shell."""
    verb, rest = (arguments or [""])[0], shlex.join(arguments[1:])
    return pip(shlex.join(["pip", *arguments]), verb, rest)


commands.OURS.update(dict.fromkeys(("pip", "pip3"), pip_command))
