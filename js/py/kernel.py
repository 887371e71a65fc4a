"""The guest's half of a kernel of Jupyter: what cells publish besides output and displays, and what
a front end asks about code.

It is in force once the host has connected it, by `isolet_jupyter.connect`.
"""

import base64
import builtins
import codeop
import contextlib
import importlib
import io
import json
import math
import pkgutil
import re
import sys
import types
import warnings

import _isolet_cells as cells
import _isolet_commands as commands
import _isolet_completion as completion
import _isolet_displays as displays
import _isolet_imports as imports
import _isolet_inspect as inspection
from _isolet_errors import describe_exception
from _isolet_interactive_shell import SHELL, patch_installed, shell

NAME = "isolet_jupyter"  # what the host's cells import
COMMAND_NAME = re.compile(r"^\s*(%{1,2})(\w*)$")
MODULE_NAME = re.compile(r"^\s*(?:import|from)\s+(?:[\w.]+\s*,\s*)*([\w.]*)$")
PATH = re.compile(r"[\w.]*$")
PATH_START = re.compile(r"^[\w]*")
INDENT = re.compile(r"[ \t]*")
MOST_NAMES = 1000

tell = None  # the host's function, once it has connected us


def install(modules, patches):
    modules[NAME] = make
    patches[SHELL] = patch_installed


def make():
    module = types.ModuleType(NAME, "The host's entry points of a kernel of Jupyter.")
    for function in (connect, answer, receive):
        setattr(module, function.__name__, function)
    return module


def connect(function, has_widgets):
    """Has what cells publish go to the host by this function. Returns Python's version."""
    global tell
    tell = function
    if has_widgets:  # programs look for this name before they show any
        shell.config["IPKernelApp"] = {}
    displays.publish = publish_display
    shell.display_pub.clear = lambda wait: publish("clear_output", {"wait": wait})
    builtins.input = kernel_input
    shell.kernel = Kernel()
    for name, patch in (("getpass", patch_getpass), ("comm", patch_comm)):
        imports.PATCHES[name] = patch
        if name in sys.modules:
            patch(sys.modules[name])
    return sys.version.split()[0]


def publish(kind, content, metadata=None, buffers=()):
    buffers = [bytes(buffer) for buffer in buffers or ()]
    tell(kind, as_json(content), as_json(metadata or {}), buffers)


def as_json(value):
    try:
        return json.dumps(value, default=str, allow_nan=False)
    except ValueError:
        return json.dumps(finite(value), default=str)


def finite(value):
    """The value with texts for numbers that JSON has not."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return value


def publish_display(formats, metadata, display_id, is_update):
    if formats:
        content = {
            "data": jsonable(formats),
            "metadata": metadata or {},
            "transient": {"display_id": display_id},
        }
        publish("update_display_data" if is_update else "display_data", content)


def jsonable(formats):
    """Formats as a message has them: bytes in base64, JSON as it is."""
    return {name: message_data(name, data) for name, data in formats.items()}


def message_data(name, data):
    if isinstance(data, bytes):
        return base64.b64encode(data).decode()
    if name == "application/json" or name.endswith("+json"):
        with contextlib.suppress(ValueError):
            return json.loads(data)
    return data


def kernel_input(prompt="", /):
    """Reads a line that the user types."""
    return ask_user(str(prompt), False)


def ask_user(prompt, is_password):
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    content = {"prompt": prompt, "password": is_password}
    return tell("input_request", as_json(content), "{}", [])


def patch_getpass(module):
    def getpass(prompt="Password: ", stream=None, *, echo_char=None):
        """Asks the user for a password, which is not shown."""
        return ask_user(str(prompt), True)

    module.getpass = getpass


def patch_comm(module):
    """Has the package `comm` send its messages to the front end."""

    class Comm(module.BaseComm):
        def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
            content = {"data": data or {}, "comm_id": self.comm_id, **keys}
            publish(msg_type, content, metadata, buffers)

    module.create_comm = Comm


class Kernel:
    """What programs look for in `get_ipython().kernel`."""

    @property
    def comm_manager(self):
        return importlib.import_module("comm").get_comm_manager()

    def get_parent(self, channel=None):
        """The message that the running code came with."""
        return json.loads(tell("parent", "{}", "{}", []))


def receive(message):
    """Gives a message of the front end to a comm."""
    kind, content, metadata, buffers = message
    content = json.loads(content)
    if "comm" not in sys.modules:
        if kind == "comm_open":  # nobody here knows of comms
            publish("comm_close", {"comm_id": content.get("comm_id", ""), "data": {}})
        return
    manager = sys.modules["comm"].get_comm_manager()
    message = {
        "header": {"msg_type": kind},
        "parent_header": {},
        "metadata": json.loads(metadata),
        "content": content,
        "buffers": list(map(memoryview, buffers)),
    }
    getattr(manager, kind)(None, None, message)


def answer(question):
    """Answers a question of the front end, in JSON."""
    kind, *arguments = question
    return as_json(ANSWERS[kind](*arguments))


def complete(code, at):
    """What the text before a place in the code may become, and where that text begins."""
    before = code[:at]
    line = before.rpartition("\n")[2]
    if found := COMMAND_NAME.match(line):
        signs, start = found.groups()
        names = shell.cell_magics if signs == "%%" else shell.line_magics | shell.cell_magics
        is_line = signs == "%"
        fitting = [
            signs + name if is_line and name in shell.line_magics else f"%%{name}"
            for name in names
            if name.startswith(start)
        ]
        return found_names(fitting, at - len(signs) - len(start))
    if found := MODULE_NAME.match(line):
        owner, dot, start = found[1].rpartition(".")
        return found_names(
            [name for name in modules_of(owner) if name.startswith(start)], at - len(start)
        )
    text = PATH.search(line)[0]
    if not text or text[0] in ".0123456789":
        return found_names([], at)
    names = completion.complete({"text": text}, shell.user_ns)["value"]
    return found_names(names, at - len(text.rpartition(".")[2]))


def found_names(names, start):
    return {"matches": sorted(set(names))[:MOST_NAMES], "start": start}


def modules_of(owner):
    """The modules that can be imported, or those of a package that has been."""
    if not owner:
        names = {*sys.stdlib_module_names, *(module.name for module in pkgutil.iter_modules())}
        return [name for name in names if not name.startswith("_")]
    path = getattr(sys.modules.get(owner), "__path__", None)
    return [module.name for module in pkgutil.iter_modules(path)] if path else []


def inspect(code, at, has_source):
    """What is known of the object that is named at a place in the code, or None."""
    name = name_at(code, at)
    if not name or inspection.find(name, shell) is inspection.MISSING:
        return None
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        inspection.tell(name, shell, has_source)
    return told.getvalue()


def name_at(code, at):
    """The dotted name at a place, or that of the function whose call the place is in."""
    while True:
        before = code[:at]
        name = PATH.search(before)[0]
        name += PATH_START.match(code[at:])[0] if name or not before.strip() else ""
        if name.strip(".") and not name[0].isdigit():
            return name.strip(".")
        depth = 0
        for place in range(len(before) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(before[place], 0)
            if depth < 0:
                at = place
                break
        else:
            return ""


def is_complete(code):
    """Whether code that was typed is whole."""
    lines = code.split("\n")
    if code.lstrip().startswith("%%"):
        is_whole = len(lines) > 1 and not lines[-1].strip()
        return {"status": "complete" if is_whole else "incomplete", "indent": ""}
    flags = cells.future_flags | cells.TOP_LEVEL_AWAIT
    python = commands.translated(commands.unindented(code))[0]
    with warnings.catch_warnings(action="ignore"):
        try:
            compiled = codeop.compile_command(python, "<stdin>", "exec", flags)
        except Exception:
            try:  # it has forgotten the flags in the end
                compiled = compile(python, "<stdin>", "exec", flags)
            except Exception:
                return {"status": "invalid"}
    last = next((line for line in reversed(lines) if line.strip()), "")
    indent = INDENT.match(last)[0]
    if compiled is not None and not (indent and lines[-1].strip()):
        return {"status": "complete"}
    return {"status": "incomplete", "indent": indent + " " * 4 * last.rstrip().endswith(":")}


def evaluate(expressions):
    """The values of a front end's expressions, as displays."""
    return {name: evaluated(expression) for name, expression in expressions.items()}


def evaluated(expression):
    try:
        value = eval(expression, shell.user_ns)
        formats = displays.formats_of(value)
        formats[displays.PLAIN] = displays.plain_text(value, formats)
        return {"status": "ok", "data": jsonable(displays.crossing(formats)), "metadata": {}}
    except Exception as error:
        told = describe_exception(error)
        return {
            "status": "error",
            "ename": told["type"],
            "evalue": told["message"],
            "traceback": told["traceback"].splitlines(),
        }


def forget():
    """Takes the last cell out of the history: its front end did not want it there."""
    namespace = shell.user_ns
    history, outputs = namespace.get("_ih"), namespace.get("_oh")
    number = shell.execution_count
    if number > 0:
        del history[-1]
        if isinstance(outputs, dict):
            outputs.pop(number, None)
        namespace.pop(f"_{number}", None)


ANSWERS = {
    "complete": complete,
    "inspect": inspect,
    "is_complete": is_complete,
    "evaluate": evaluate,
    "forget": forget,
}
