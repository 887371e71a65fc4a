"""IPython's shell, as far as cells can have one: `get_ipython()`, the history, and commands.

It is there from the first cell on that may have commands of IPython. Its variables are those of the
namespace that the cell runs in, so that each context of a session has its own history.
"""

import ast
import builtins
import os
import re
import sys

import _isolet_cells as cells
import _isolet_displays as displays
import _isolet_waits as waits
from _isolet_errors import format_traceback

VERSION = (9, 0, 0, "")
KEPT = 1000  # values and texts of cells
NAMED = 32  # values of cells that are variables, such as `_7`: each run looks through all of those
COROUTINE = 0x80  # inspect.CO_COROUTINE
SHOW = "<show>"  # among the built-ins; no guest code can spell it
MISSING = object()
UNDERSCORES = ("_", "__", "___")
INTERACTIVITY = frozenset(["all", "last", "last_expr", "none", "last_expr_or_assign"])
SHELL = "IPython.core.interactiveshell"
EXPANSION = re.compile(r"\{([^{}]+)\}|\$(\$?[A-Za-z_][\w.]*)")


class UsageError(Exception):
    """A command that is not used as it has to be."""


UsageError.__module__ = "builtins"  # its name in tracebacks is as IPython has it


class Inputs(list):
    """The texts of the cells so far."""


class Outputs(dict):
    """The values of the cells so far."""

    def __init__(self):
        self.last, self.named = ["", "", ""], []


class Events:
    """What extensions are called at."""

    NAMES = ("pre_execute", "pre_run_cell", "post_execute", "post_run_cell", "shell_initialized")

    def __init__(self):
        self.callbacks = {name: [] for name in self.NAMES}

    def register(self, event, function):
        if function not in self.callbacks[event]:
            self.callbacks[event].append(function)

    def unregister(self, event, function):
        if function not in self.callbacks[event]:
            raise ValueError(f"Function {function!r} is not registered as a {event} callback")
        self.callbacks[event].remove(function)

    def trigger(self, event, *arguments):
        for function in list(self.callbacks[event]):
            displays.attempt(function, *arguments)


class Config(dict):
    """Options by the names of attributes; all can be set, and none has an effect."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.setdefault(name, Config())

    def __setattr__(self, name, value):
        self[name] = value


class Result:
    """What became of `run_cell`."""

    def __init__(self):
        self.result = self.error_before_exec = self.error_in_exec = None

    @property
    def success(self):
        return self.error_before_exec is None and self.error_in_exec is None

    def raise_error(self):
        if not self.success:
            raise self.error_before_exec or self.error_in_exec


class DisplayFormatter:
    """The formats of objects, for the functions of an installed IPython."""

    def format(self, obj, include=None, exclude=None):
        if displays.shows_itself(obj):
            return {}, {}
        formats = displays.formats_of(obj, include, exclude)
        formats[displays.PLAIN] = displays.plain_text(obj, formats)
        return formats, {}


class DisplayPublisher:
    """Displays what an installed IPython has made, and what `clear` is for."""

    clear = None  # in a kernel of Jupyter: what clears the cell's output

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **options):
        display_id = (transient or {}).get("display_id")
        displays.display(data, raw=True, metadata=metadata, display_id=display_id, update=update)

    def clear_output(self, wait=False):
        if self.clear is not None:
            self.clear(bool(wait))


class MagicsManager:
    def __init__(self, magics):
        self.magics = magics

    def lsmagic(self):
        return self.magics


class InteractiveShell:
    """The shell of the session."""

    ast_node_interactivity = "last_expr"
    colors = "nocolor"
    banner = ""

    def __init__(self):
        self.line_magics, self.cell_magics = {}, {}
        self.magics_manager = MagicsManager({"line": self.line_magics, "cell": self.cell_magics})
        self.events = Events()
        self.display_formatter, self.display_pub = DisplayFormatter(), DisplayPublisher()
        self.config = Config()
        self.extensions = set()
        self.name, self.text = "<cell>", ""  # of the cell that runs

    @classmethod
    def instance(cls, *arguments, **options):
        return shell

    @classmethod
    def initialized(cls):
        return is_active()

    @property
    def user_ns(self):
        return sys.modules["__main__"].__dict__

    user_global_ns = user_ns

    @property
    def user_module(self):
        return sys.modules["__main__"]

    @property
    def execution_count(self):
        history = self.user_ns.get("_ih")
        return len(history) - 1 if type(history) is Inputs else 0

    # What a cell is made of.

    def interactivity(self):
        """Which expressions of a cell have their values shown."""
        # An installed IPython has a class of its own, which programs set it on.
        module = sys.modules.get(SHELL)
        if module is None and "ast_node_interactivity" not in self.__dict__:
            return "last_expr"
        of_class = getattr(module, "InteractiveShell", None)
        for owner in (self.__dict__, vars(of_class) if isinstance(of_class, type) else {}):
            chosen = owner.get("ast_node_interactivity")
            if type(chosen) is str and chosen in INTERACTIVITY:
                return chosen
        return "last_expr"

    def arrange(self, tree, python):
        """Changes a cell's tree so that the values are shown that are to be."""
        last = tree.body[-1] if tree.body else None
        interactivity = self.interactivity()
        if interactivity == "all":
            setattr(builtins, SHOW, show)
            for node in tree.body[:-1]:
                if isinstance(node, ast.Expr):
                    call = ast.Call(ast.Name(SHOW, ast.Load()), [node.value], [])
                    ast.copy_location(call, node.value)
                    ast.copy_location(call.func, node.value)
                    node.value = call
        if interactivity == "last_expr_or_assign" and not isinstance(last, ast.Expr):
            name = assigned_name(last)
            if name is not None:
                value = ast.copy_location(ast.Name(name, ast.Load()), last)
                tree.body.append(ast.copy_location(ast.Expr(value), last))
                last = tree.body[-1]
        if isinstance(last, ast.Expr) and (interactivity == "none" or is_quiet(last, python)):
            tree.body.append(ast.copy_location(ast.Pass(), last))

    # The history.

    def begin(self, namespace, source, name):
        """Notes a cell that is about to run."""
        history = namespace.get("_ih")
        if type(history) is not Inputs:
            history = self.start(namespace)
        if vars(builtins).get("get_ipython") is not get_ipython:
            builtins.get_ipython = get_ipython
        self.name, self.text = name, source
        texts = history[-1:-4:-1] + ["", ""]
        namespace["_i"], namespace["_ii"], namespace["_iii"] = texts[:3]
        history.append(source)
        if len(history) > KEPT:
            history[len(history) - KEPT] = ""

    def start(self, namespace):
        """Gives a namespace a history."""
        history, outputs = Inputs([""]), Outputs()
        namespace.update(In=history, _ih=history, Out=outputs, _oh=outputs)
        namespace.update(dict.fromkeys(UNDERSCORES, ""), _dh=[directory()])
        return history

    def keep(self, namespace, value):
        """Notes the value of the cell that ran."""
        outputs = namespace.get("_oh")
        if value is None or value is outputs or type(outputs) is not Outputs:
            return
        ours = zip(UNDERSCORES, outputs.last)
        is_ours = all(namespace.get(name, kept) is kept for name, kept in ours)
        outputs.last = [value, *outputs.last[:2]]
        if is_ours and "_" not in vars(builtins):
            namespace.update(zip(UNDERSCORES, outputs.last))
        number = self.execution_count
        while len(outputs) >= KEPT:
            del outputs[next(iter(outputs))]
        outputs[number] = namespace[f"_{number}"] = value
        outputs.named.append(number)
        if len(outputs.named) > NAMED:
            namespace.pop(f"_{outputs.named.pop(0)}", None)

    def release(self, namespace):
        """Lets go of the values of cells, as there is no memory."""
        outputs = namespace.get("_oh")
        if type(outputs) is Outputs:
            for number in outputs.named:
                namespace.pop(f"_{number}", None)
            for name, kept in zip(UNDERSCORES, outputs.last):
                if namespace.get(name) is kept:
                    namespace[name] = ""
            outputs.clear()
            outputs.last, outputs.named = ["", "", ""], []

    # What cells call.

    def run_line_magic(self, magic_name, line, _stack_depth=1):
        """Carries out the command of a line."""
        function = self.find_line_magic(magic_name)
        if function is None:
            other = magic_name in self.cell_magics
            extra = f" (But cell magic `%%{magic_name}` exists, did you mean that instead?)"
            raise UsageError(
                f"Line magic function `%{magic_name}` not found{extra if other else '.'}"
                f"{'.' if other else ''}"
            )
        frame = sys._getframe(_stack_depth)
        if not getattr(function, "has_own_text", False):
            line = self.var_expand(line, frame=frame)
        if getattr(function, "needs_local_scope", False):
            return function(line, local_ns=frame.f_locals)
        return function(line)

    def run_cell_magic(self, magic_name, line, cell):
        """Carries out the command of a cell."""
        function = self.find_cell_magic(magic_name)
        if function is None:
            other = magic_name in self.line_magics
            extra = f" (But line magic `%{magic_name}` exists, did you mean that instead?)"
            raise UsageError(f"Cell magic `%%{magic_name}` not found{extra if other else ''}.")
        if not cell:
            other = magic_name in self.line_magics
            extra = f" Did you mean the line magic %{magic_name} (single %)?"
            raise UsageError(
                f"%%{magic_name} is a cell magic, but the cell body is empty."
                f"{extra if other else ''}"
            )
        if not getattr(function, "has_own_text", False):
            line = self.var_expand(line, frame=sys._getframe(1))
        if getattr(function, "needs_local_scope", False):
            return function(line, cell, local_ns=self.user_ns)
        return function(line, cell)

    def magic(self, arg_s):
        name, _, line = arg_s.strip().lstrip("%").partition(" ")
        return self.run_line_magic(name, line.strip(), 2)

    def find_magic(self, magic_name, magic_kind="line"):
        return self.magics_manager.magics[magic_kind].get(magic_name)

    def find_line_magic(self, magic_name):
        return self.line_magics.get(magic_name)

    def find_cell_magic(self, magic_name):
        return self.cell_magics.get(magic_name)

    def register_magic_function(self, func, magic_kind="line", magic_name=None):
        kinds = ("line", "cell") if magic_kind == "line_cell" else (magic_kind,)
        for kind in kinds:
            self.magics_manager.magics[kind][magic_name or func.__name__] = func

    def register_magics(self, *classes):
        for found in classes:
            owner = found(shell=self) if isinstance(found, type) else found
            for name in dir(type(owner)):
                for kind, magic_name in getattr(getattr(type(owner), name), "magic_names", ()):
                    self.register_magic_function(getattr(owner, name), kind, magic_name)

    def system(self, cmd):
        self.line_magics["system"].carry_out(self.var_expand(cmd, 1))

    system_raw = system_piped = system

    def getoutput(self, cmd, split=True, depth=0):
        found = self.line_magics["sx"](self.var_expand(cmd, 1))
        return found if split else found.n

    def run_cell(self, raw_cell, store_history=False, silent=False, shell_futures=True, **options):
        """Runs the text of a cell, and shows its value."""
        result = Result()
        self.events.trigger("pre_execute")
        try:
            _, result.result = self.run_code(raw_cell, "<run_cell>")
            if not silent and result.result is not None:
                show(result.result)
        except Exception as error:
            result.error_in_exec = error
            print(format_traceback(error), end="", file=sys.stderr)
        self.events.trigger("post_execute")
        return result

    def run_code(self, source, name):
        """Runs the text of a cell: `(has_value, value)`."""
        return self.run_prepared(self.prepare(source, name))

    def run_body(self, source):
        """Runs the rest of a cell whose first line is a command."""
        return self.run_prepared(self.prepare_body(source))

    def prepare(self, source, name, first=1):
        """Compiles the text of a cell, which begins at the line `first` of what is shown under its
        name.
        """
        padded = "\n" * (first - 1) + source
        code, shown = cells.compile_cell(padded, name, False, self)
        if first > 1:  # what comes before is shown too
            shown = "\n".join(self.text.split("\n")[: first - 1] + shown.split("\n")[first - 1 :])
        cells.remember_source(code, shown, name)
        return code

    def prepare_body(self, source):
        before = self.text[: len(self.text) - len(self.text.lstrip())].count("\n")
        return self.prepare(source, self.name, first=before + 2)

    def run_prepared(self, code, local_ns=None):
        namespace = self.user_ns
        if local_ns is None or local_ns is namespace:
            local_ns = namespace
        else:
            local_ns = dict(local_ns)
        outer = local_ns.pop(cells.VALUE, MISSING)
        try:
            result = eval(code, namespace, local_ns)
            if code.co_flags & COROUTINE:
                waits.wait_for(result, interrupt=waits.throw_interrupt)
            value = local_ns.pop(cells.VALUE, MISSING)
        finally:
            if outer is not MISSING:
                local_ns[cells.VALUE] = outer
        return (False, None) if value is MISSING else (True, value)

    def ev(self, expr):
        return eval(expr, self.user_ns)

    def ex(self, cmd):
        exec(cmd, self.user_ns)

    def push(self, variables, interactive=True):
        if isinstance(variables, str):
            variables = variables.split()
        if isinstance(variables, (list, tuple)):
            variables = {name: sys._getframe(1).f_locals[name] for name in variables}
        self.user_ns.update(variables)

    def drop_by_id(self, variables):
        for name, value in variables.items():
            if self.user_ns.get(name, MISSING) is value:
                del self.user_ns[name]

    def var_expand(self, cmd, depth=0, formatter=None, frame=None):
        """Puts values in the places of `{expression}` and `$name`, if all can be had."""
        frame = frame or sys._getframe(depth + 1)

        def value(found):
            if found[2] and found[2].startswith("$"):
                return found[2]
            return str(eval(found[1] or found[2], self.user_ns, frame.f_locals))

        try:
            return EXPANSION.sub(value, cmd)
        except Exception:
            return cmd

    def showtraceback(self, *arguments, **options):
        error = sys.exception()
        if error is not None:
            print(format_traceback(error), end="", file=sys.stderr)

    def show_usage(self):
        print("A cell is Python, with commands of IPython: %lsmagic lists them, name? tells more.")

    def run_line(self, line):
        return self.run_cell(line)

    def transform_cell(self, raw_cell):
        return cells.commands.translated(cells.commands.unindented(raw_cell))[0]

    def reset(self, new_session=True, aggressive=False):
        namespace = self.user_ns
        for name in list(namespace):
            if not (name.startswith("__") and name.endswith("__")):
                del namespace[name]
        self.start(namespace)

    def enable_matplotlib(self, gui=None):
        return gui, "inline"

    def enable_gui(self, gui=None):
        pass

    def set_next_input(self, s, replace=False):
        print("set_next_input: there is no prompt to put this text at", file=sys.stderr)

    def ask_exit(self):
        raise SystemExit

    def __repr__(self):
        return "<IPython's shell in isolet>"


class SList(list):
    """Lines of output, with the attributes that IPython's have."""

    @property
    def l(self):  # noqa: E743
        return list(self)

    list = l

    @property
    def n(self):
        return "\n".join(self)

    nlstr = n

    @property
    def s(self):
        return " ".join(self)

    spstr = s

    def grep(self, pattern, prune=False, field=None):
        return SList(line for line in self if bool(re.search(pattern, line, re.I)) != prune)

    def fields(self, *numbers):
        if not numbers:
            return [line.split() for line in self]
        split = [line.split() for line in self]
        return SList(" ".join(line[at] for at in numbers if at < len(line)) for line in split)


def magic(*names, kind="line", own_text=False, local_scope=False):
    """Makes a function a command; `own_text` if no values are put into its text."""

    def made(function):
        kinds = ("line", "cell") if kind == "line_cell" else (kind,)
        function.magic_names = [(each, name) for each in kinds for name in names]
        function.has_own_text, function.needs_local_scope = own_text, local_scope
        return function

    return made


def directory():
    try:
        return os.getcwd()
    except OSError:
        return "/home/user"


def show(value):
    """Shows a value that is not that of the whole cell."""
    if value is not None:
        displays.display(value)


def assigned_name(node):
    """The name that a last statement gives a value, if it is one."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        target = node.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def is_quiet(last, python):
    """Whether a semicolon follows the last expression."""
    if ";" not in python:
        return False
    lines = python.split("\n")
    end = lines[last.end_lineno - 1].encode()[last.end_col_offset :]
    rest = "\n".join([end.decode("utf-8", "replace"), *lines[last.end_lineno :]])
    return rest.lstrip(" \t\\)\n").startswith(";")


def patch_installed(module):
    """Has the functions of an installed IPython find this shell, when cells may have commands."""
    kind = module.InteractiveShell
    kind.initialized = classmethod(lambda cls: is_active())
    kind.instance = classmethod(lambda cls, *arguments, **options: shell)


def is_active():
    return vars(builtins).get("get_ipython") is get_ipython


def get_ipython():
    """The shell of the session, which its commands are methods of."""
    return shell


shell = InteractiveShell()
get_ipython.__module__ = "IPython.core.getipython"
InteractiveShell.__module__ = SHELL
