"""Commands of IPython that a shell would carry out, and those that install packages."""

import re
import shlex
import sys

import _isolet_packages as packages
from _isolet_shell import SList, UsageError, magic, shell

NO_SHELL = "there is no shell here, only Python"
FILES = "open(), pathlib and shutil read, write and move files"
PIP = re.compile(
    r"(?:(?:uv )?pip3?|conda|mamba|micromamba|(?:python3?|\{sys\.executable\}|\S*/python\S*)"
    r" +-m +pip)(?: +(?P<verb>[a-z]+)(?P<rest>.*))?$"
)
REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(?:[<>=!~;@].*)?$")
WITH_VALUE = ("-i", "--index-url", "--extra-index-url", "-c", "--constraint", "-f", "-t", "-n")
NAMES = (
    *("bash", "sh", "script", "perl", "ruby", "pypy", "python", "python2", "python3", "cmd"),
    *("ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "ll", "lf", "ldir", "man", "less", "more"),
)


def refusing(name):
    def refuse(line, cell=None):
        sign = "%" if cell is None else "%%"
        raise UsageError(f"`{sign}{name}`: {NO_SHELL}; {FILES}")

    return refuse


def told(text):
    print(text, file=sys.stderr)


def system(line):
    """Says what became of a command of a shell: nothing, unless it installs packages."""
    line = line.strip()
    shell.user_ns["_exit_code"] = 0
    found = PIP.match(line)
    if found is not None:
        shell.user_ns["_exit_code"] = pip(f"!{line}", found["verb"], found["rest"] or "")
    elif line:
        shell.user_ns["_exit_code"] = 127
        told(f"`!{line}`: {NO_SHELL}; {FILES}")


@magic("system", "sx", "!", kind="line_cell")
def sx(line, cell=None):
    """Runs a command of a shell."""
    for one in [line, *(cell or "").splitlines()]:
        system(one)
    return SList()


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
