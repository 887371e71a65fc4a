"""The commands of IPython that cells may have, and why others cannot be had."""

import ast
import importlib
import io
import os
import re
import runpy
import shlex
import sys
import time

import _isolet_capture as capture
import _isolet_commands as commands
import _isolet_displays as displays
import _isolet_inspect as inspection
import _isolet_ipython as ipython
import _isolet_shell_magics as shell_magics
import _isolet_timing as timing
import _isolet_tools as tools
from _isolet_interactive_shell import UsageError, magic, shell

HIDDEN = frozenset(["In", "Out"])
XMODES = ("Plain", "Context", "Verbose", "Minimal", "Docs")

# Commands that need nothing done: what they set has no effect, or is so already.
WITHOUT_EFFECT = (
    *("matplotlib", "autoreload", "gui", "colors", "color", "automagic", "autocall", "pprint"),
    *("doctest_mode", "logstart", "logstop", "logon", "logoff", "subprocess"),
)
# Commands that are known and cannot be carried out.
IMPOSSIBLE = {
    "debug": "nobody answers the prompt of a debugger",
    "pdb": "nobody answers the prompt of a debugger",
    "edit": "there is no editor",
    "load": "there is no prompt to put a file's text at; `%run FILE` runs it",
    "loadpy": "there is no prompt to put a file's text at; `%run FILE` runs it",
    "recall": "there is no prompt to put a text at; `In` has the texts of cells",
    "store": "nothing is kept from one session to another; write a file",
    "precision": "it has no effect here; `round` and f-strings shorten numbers",
    "connect_info": "there is no kernel to connect to",
    "qtconsole": "there is no kernel to connect to",
    "notebook": "there is no notebook's file here",
}


def install(into):
    """Gives the shell its commands."""
    for function in (*globals().values(), *vars(shell_magics).values()):
        for kind, magic_name in getattr(function, "magic_names", ()):
            into.register_magic_function(function, kind, magic_name)
    for name in WITHOUT_EFFECT:
        into.register_magic_function(nothing, "line", name)
    for name, run in shell_magics.NAMES.items():
        into.register_magic_function(run, "line_cell", name)
    for name, reason in IMPOSSIBLE.items():
        into.register_magic_function(impossible(name, reason), "line", name)
    into.line_magics["system"].carry_out = shell_magics.system


def nothing(line):
    pass


def impossible(name, reason):
    def refuse(line):
        raise UsageError(f"`%{name}` is not possible here: {reason}")

    return refuse


def options_of(line, flags, with_value=""):
    """The options at the start of a line, of one letter each, and the rest of it."""
    found, rest = {}, line.strip()
    while (option := re.match(r"-([A-Za-z])(\S*)(?:\s+|$)", rest)) is not None:
        letter, value = option[1], option[2]
        if letter in with_value:
            rest = rest[option.end() :]
            if not value:
                value, _, rest = rest.partition(" ")
            found[letter] = value
        elif all(one in flags for one in letter + value):
            found.update(dict.fromkeys(letter + value, ""))
            rest = rest[option.end() :]
        else:
            break
        rest = rest.lstrip()
    return found, rest


# Time.


@magic("time", kind="line_cell", own_text=True, local_scope=True)
def time_(line, cell=None, local_ns=None):
    """Runs code, and prints the time that it took."""
    line = line.removeprefix("--no-raise-error").strip() if cell is None else line
    if line and cell is not None:
        raise UsageError("Can't use statement directly after '%%time'!")
    code = shell.prepare(line, "<timed eval>") if cell is None else shell.prepare_body(cell)
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        _, value = shell.run_prepared(code, local_ns)
    finally:
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        shown = timing.text(cpu)
        print(f"CPU times: user {shown}, sys: 0 ns, total: {shown}")
        print(f"Wall time: {timing.text(wall)}")
    return value


@magic("timeit", kind="line_cell", own_text=True, local_scope=True)
def timeit(line, cell=None, local_ns=None):
    """Runs code many times, and prints how long each time took."""
    options, statement = options_of(line, "qotcv", "nrp")
    if not statement.strip() and cell is None:
        return None
    body, setup = (statement, "pass") if cell is None else (cell, statement or "pass")
    namespace = shell.user_ns
    if local_ns is not None and local_ns is not namespace:
        namespace = {**namespace, **local_ns}
    result = timing.measure(
        *(commands.translated(commands.unindented(text))[0] for text in (body, setup)),
        namespace=namespace,
        loops=int(options.get("n") or 0),
        runs=max(int(options.get("r") or timing.RUNS), 1),
        precision=int(options.get("p") or 3),
    )
    if "q" not in options:
        print(result)
    return result if "o" in options else None


@magic("prun", kind="line_cell", own_text=True)
def prun(line, cell=None):
    """Runs code, and prints how long its functions took."""
    import cProfile
    import pstats

    options, statement = options_of(line, "rq", "lsTD")
    source = statement if cell is None else f"{statement}\n{cell}"
    code, profile = shell.prepare(source, "<profiled>"), cProfile.Profile()
    try:
        profile.runcall(shell.run_prepared, code)
    except SystemExit:
        print("*** SystemExit exception caught in code being profiled.", end=" ")
    printed = io.StringIO()
    stats = pstats.Stats(profile, stream=printed).strip_dirs()
    stats.sort_stats(options.get("s") or "time").print_stats(*limits(options.get("l")))
    if "q" not in options:
        print(printed.getvalue().rstrip())
    if options.get("D"):
        profile.dump_stats(options["D"])
    if options.get("T"):
        with open(options["T"], "w") as file:
            file.write(printed.getvalue())
    return stats if "r" in options else None


def limits(text):
    if not text:
        return ()
    try:
        return (float(text) if "." in text else int(text),)
    except ValueError:
        return (text,)


# Output.


@magic("capture", kind="cell")
def capture_(line, cell):
    """Runs the cell, and keeps what it prints and displays."""
    words = line.split()
    flags = {word for word in words if word.startswith("--")}
    names = [word for word in words if not word.startswith("-")]
    wanted = {kind: f"--no-{kind}" not in flags for kind in ("stdout", "stderr", "display")}
    with capture.capture_output(**wanted) as kept:
        if names:
            shell.user_ns[names[0]] = kept
        has_value, value = shell.run_body(cell)
        if has_value and value is not None:
            displays.display(value)


def shown_as(name, *names):
    @magic(name, *names, kind="cell")
    def show(line, cell):
        displays.display(getattr(ipython, SHOWN[name])(cell))

    return show


SHOWN = {
    "html": "HTML",
    "markdown": "Markdown",
    "latex": "Latex",
    "svg": "SVG",
    "javascript": "Javascript",
}
html = shown_as("html", "HTML")
markdown = shown_as("markdown")
latex = shown_as("latex")
svg = shown_as("svg", "SVG")
javascript = shown_as("javascript", "js")


# Files and directories.


@magic("writefile", "file", kind="cell")
def writefile(line, cell):
    """Writes the cell to a file."""
    options, name = options_of(line, "a")
    if name.endswith(" -a"):
        options, name = {"a": ""}, name.removesuffix(" -a")
    name = os.path.expanduser(unquoted(name.strip()))
    if not name:
        raise UsageError("%%writefile needs the name of a file: `%%writefile [-a] NAME`")
    does = "Overwriting" if os.path.exists(name) else "Writing"
    print(f"{'Appending to' if 'a' in options and does == 'Overwriting' else does} {name}")
    with open(name, "a" if "a" in options else "w", encoding="utf-8") as file:
        file.write(cell)


@magic("run", own_text=False)
def run(line):
    """Runs a file of Python, or a notebook, and takes over its variables."""
    options, rest = options_of(line, "ientpd", "N")
    is_module = rest.startswith("-m ")
    words = shlex.split(rest.removeprefix("-m ").strip())
    if not words:
        raise UsageError("`%run` needs a file: `%run [-i] [-n] [-t] FILE ARGUMENTS`")
    started = time.perf_counter()
    name = words[0] if is_module else found_file(words[0])
    argv, sys.argv = sys.argv, [name, *words[1:]]
    try:
        if is_module:
            variables = runpy.run_module(name, run_name="__main__", alter_sys=False)
        elif name.endswith((".ipynb", ".ipy")):
            run_notebook(name)
            variables = {}
        elif "i" in options:
            run_file(name, shell.user_ns)
            variables = {}
        else:
            variables = {
                "__name__": os.path.splitext(os.path.basename(name))[0]
                if "n" in options
                else "__main__",
                "__file__": name,
                "__builtins__": __builtins__,
            }
            sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
            try:
                run_file(name, variables)
            finally:
                del sys.path[sys.path.index(os.path.dirname(os.path.abspath(name)))]
    except SystemExit as exit:
        if exit.code not in (None, 0) and "e" not in options:
            raise
        variables = {}
    finally:
        sys.argv = argv
    if "t" in options:
        print("\nIPython CPU timings (estimated):")
        print(f"  User   : {time.perf_counter() - started:10.2f} s.")
    own = ("__name__", "__file__", "__builtins__", "__doc__", "__package__", "__loader__")
    own += ("__spec__", "__cached__", "__annotations__")
    shell.user_ns.update({name: value for name, value in variables.items() if name not in own})


def found_file(name):
    name = os.path.expanduser(name)
    for found in (name, f"{name}.py"):
        if os.path.isfile(found):
            return found
    raise FileNotFoundError(f"File `{name + '.py' if '.' not in name else name}` not found.")


def run_file(name, namespace):
    with io.open_code(os.path.abspath(name)) as file:
        code = compile(file.read(), name, "exec", dont_inherit=True)
    exec(code, namespace)


def run_notebook(name):
    with open(name, encoding="utf-8") as file:
        text = file.read()
    if name.endswith(".ipynb"):
        import json

        found = (cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
        texts = ["".join(cell["source"]) for cell in found]
    else:
        texts = [text]
    for number, text in enumerate(texts, 1):
        shell.run_code(text, f"{name}, cell {number}")


@magic("pwd")
def pwd(line):
    """The working directory."""
    return os.getcwd()


@magic("cd")
def cd(line):
    """Changes the working directory."""
    options, name = options_of(line, "q")
    namespace = shell.user_ns
    visited = namespace.setdefault("_dh", [os.getcwd()])
    name = unquoted(name.strip())
    if name == "-":
        if len(visited) < 2:
            raise UsageError("%cd -: No previous directory to change to.")
        name = visited[-2]
    elif not name:
        name = os.path.expanduser("~")
    os.chdir(os.path.expanduser(name))
    visited.append(os.getcwd())
    if "q" not in options:
        print(os.getcwd())


@magic("pycat", "pfile")
def pycat(line):
    """Prints a file."""
    with open(os.path.expanduser(unquoted(line.strip())), encoding="utf-8") as file:
        print(file.read())


def unquoted(name):
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] and name[0] in "\"'" else name


# Variables and the session.


def names_of(line):
    """The names that a program has given, of these types."""
    kinds = line.split()
    found = (
        name
        for name, value in shell.user_ns.items()
        if type(name) is str
        and not name.startswith("_")
        and name not in HIDDEN
        and (not kinds or type(value).__name__ in kinds)
        and not tools.is_function(name, value)
    )
    return sorted(found)


@magic("who_ls")
def who_ls(line):
    """The names of variables, sorted."""
    return names_of(line)


@magic("who")
def who(line):
    """Prints the names of variables."""
    names = names_of(line)
    if not names:
        print(EMPTY[bool(line)])
        return
    for at, name in enumerate(names, 1):
        print(f"{name}\t", end=" " if at % 9 else "\n")
    print()


@magic("whos")
def whos(line):
    """Prints variables with their types and values."""
    names = names_of(line)
    if not names:
        print(EMPTY[bool(line)])
        return
    inspection.print_table([(name, shell.user_ns[name]) for name in names])


EMPTY = {False: "Interactive namespace is empty.", True: "No variables match your requested type."}


@magic("reset")
def reset(line):
    """Deletes the variables. Without `-f` too: nobody is asked."""
    shell.reset()


@magic("xdel")
def xdel(line):
    """Deletes a variable, and the history's mentions of its value."""
    name = options_of(line, "n")[1]
    if name not in shell.user_ns:
        raise NameError(f"name {name!r} is not defined")
    value = shell.user_ns.pop(name)
    for outputs in (shell.user_ns, shell.user_ns.get("_oh", {})):
        for key in [key for key, kept in outputs.items() if kept is value]:
            del outputs[key]


@magic("history", "hist")
def history(line):
    """Prints the texts of cells."""
    options, _ = options_of(line, "notpu", "lfg")
    for number, text in enumerate(shell.user_ns.get("_ih", [])[1:], 1):
        print(f"{number}: {text}" if "n" in options else text)


@magic("env")
def env(line):
    """The variables of the environment, one of them, or sets one."""
    line = line.strip()
    if not line:
        return dict(os.environ)
    if "=" in line or " " in line:
        return set_env(line)
    if line not in os.environ:
        raise UsageError(f"Environment does not have key: {line}")
    return os.environ[line]


@magic("set_env")
def set_env(line):
    """Sets a variable of the environment."""
    name, _, value = re.sub(r"\s*=\s*|\s+", "=", line.strip(), count=1).partition("=")
    if not name or not value:
        raise UsageError("a variable needs a name and a value: `%env NAME=VALUE`")
    os.environ[name] = value
    print(f"env: {name}={value}")


@magic("xmode")
def xmode(line):
    """Names a form of tracebacks; they have the same one."""
    wanted = line.strip().capitalize() or "Context"
    if wanted not in XMODES:
        modes = ", ".join(XMODES)
        raise UsageError(f"`%xmode {line.strip()}`: the modes are {modes}")
    print(f"Exception reporting mode: {wanted}")


@magic("config")
def config(line):
    """Sets an option of IPython."""
    name, is_set, value = line.partition("=")
    owner, _, option = name.strip().partition(".")
    if option == "ast_node_interactivity" and is_set:
        shell.ast_node_interactivity = ast.literal_eval(value.strip())
    elif is_set and option:
        setattr(getattr(shell.config, owner), option, value.strip())


@magic("load_ext", "reload_ext")
def load_ext(line):
    """Loads an extension."""
    name = line.strip()
    if not name:
        raise UsageError("Missing module name.")
    if name in ("autoreload", "storemagic"):
        return
    module = importlib.import_module(name)
    begin = getattr(module, "load_ipython_extension", None)
    if begin is None:
        print(f"The {name} module is not an IPython extension.")
        return
    if name not in shell.extensions:
        begin(shell)
        shell.extensions.add(name)


@magic("unload_ext")
def unload_ext(line):
    """Has an extension end what it does."""
    end = getattr(sys.modules.get(line.strip()), "unload_ipython_extension", None)
    if end is not None and line.strip() in shell.extensions:
        end(shell)
        shell.extensions.discard(line.strip())


@magic("pylab")
def pylab(line):
    """Gives the session the names of matplotlib and numpy."""
    shell.run_code(PYLAB, "<pylab>")
    print("Populating the interactive namespace from numpy and matplotlib")


PYLAB = """
import numpy, matplotlib
from matplotlib import pylab, mlab, pyplot
np, plt = numpy, pyplot
from pylab import *
from numpy import *
"""


@magic("lsmagic")
def lsmagic(line):
    """Prints the commands that there are."""
    known = {*WITHOUT_EFFECT, *shell_magics.NAMES, *IMPOSSIBLE}
    for kind, sign in (("line", "%"), ("cell", "%%")):
        names = sorted(set(shell.magics_manager.magics[kind]) - known)
        print(f"Available {kind} magics:")
        print("  ".join(sign + name for name in names))


@magic("magic")
def magic_(line):
    """Tells of the commands."""
    lsmagic(line)


@magic("pinfo")
def pinfo(line):
    """Tells of an object."""
    inspection.tell(line, shell)


@magic("pinfo2", "psource")
def pinfo2(line):
    """Tells of an object, with its source."""
    inspection.tell(line, shell, has_source=True)


@magic("pdoc", "pdef")
def pdoc(line):
    """Tells of an object."""
    inspection.tell(line, shell)


@magic("psearch")
def psearch(line):
    """Prints the names that a pattern has."""
    inspection.search(line, shell)
