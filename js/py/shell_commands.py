"""The commands that the shell has from Python: `python`, `pip`, and the session's tools."""

import builtins
import contextlib
import functools
import inspect
import io
import json
import os
import posix
import sys
import traceback
import types

import _isolet_alarms as alarms
import _isolet_programs as programs
import _isolet_shell_web as web
import _isolet_tools as tools
import _isolet_waits as waits

VERSION = "Python {}.{}.{}".format(*sys.version_info[:3])
WITH_VALUE = ("-W", "-X")  # options of python that take a value
SYSTEM = "/lib/"  # where the standard library and packages are
ALONE = "bBdEiIOPqsSuvx"  # those that take none, of which only -u changes something here
BROKEN_PIPE = 141  # the status of a command that nobody reads


class Usage(Exception):
    """Options that there are not."""


class Stopped(BaseException):
    """The shell has stopped the command of a process, whose output goes nowhere."""

    def __init__(self, process):
        super().__init__()
        self.process = process


def carry_out(call, process, stdin):
    """The status of a command that the shell has asked for, which reads a file and writes to
    `process`."""
    command = find(call["name"].removeprefix("/usr/bin/").removeprefix("/bin/"))
    if command is None:
        process.write(2, f"bash: {call['name']}: command not found\n".encode())
        return 127
    try:
        with Streams(process, stdin, call["seen"]) as streams, place(call["cwd"], call["env"]):
            with alarms.looking(process.look, process.next_look()):
                status = command(call["args"])
            return streams.finish(status)
    except BrokenPipeError:
        return BROKEN_PIPE
    except Stopped as stop:
        if stop.process is not process:
            raise
        return BROKEN_PIPE  # which nobody sees


class Input(io.BufferedReader):
    """What is there already, and then what `more` returns."""

    def __init__(self, begun, more):
        super().__init__(RawInput(begun, more))


class RawInput(io.RawIOBase):
    def __init__(self, begun, more):
        self.left, self.more = begun, more

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self.left or self.more()
        count = min(len(piece), len(buffer))
        buffer[:count] = piece[:count]
        self.left = piece[count:]
        return count


class Output(io.RawIOBase):
    """A stream of a command, whose pieces go to the shell."""

    def __init__(self, process, descriptor):
        self.process, self.descriptor = process, descriptor

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        self.process.write(self.descriptor, data)
        return len(data)


class Streams:
    """Standard streams of a command's own, with buffers as CPython has them: what somebody sees
    goes on with each line, and what goes into a pipe or a file in blocks.
    """

    NAMES = ("stdin", "stdout", "stderr")

    def __init__(self, process, stdin, is_seen):
        out, err = (io.BufferedWriter(Output(process, descriptor)) for descriptor in (1, 2))
        self.own = [
            io.TextIOWrapper(stdin, "utf-8", "surrogateescape"),
            io.TextIOWrapper(out, "utf-8", "surrogateescape", line_buffering=is_seen),
            io.TextIOWrapper(err, "utf-8", "backslashreplace", line_buffering=True),
        ]
        for stream, mode in zip(self.own, "rww"):
            stream.mode = mode

    def __enter__(self):
        self.kept = [getattr(sys, name) for name in self.NAMES]
        for name, stream in zip(self.NAMES, self.own):
            setattr(sys, name, stream)
        return self

    def __exit__(self, *_):
        for name, stream in zip(self.NAMES, self.kept):
            setattr(sys, name, stream)
        for stream in self.own[1:]:
            with contextlib.suppress(OSError, ValueError, Stopped):  # as of one without a buffer
                stream.close()

    def finish(self, status):
        """Writes what is left; the status, which tells of it if nobody reads that."""
        for stream in self.own[1:]:
            try:
                stream.flush()
            except BrokenPipeError:
                status = status or BROKEN_PIPE
            except ValueError:  # the program has closed it
                pass
        return status


@contextlib.contextmanager
def place(directory, variables):
    """The directory and the environment of a command."""
    before, environment = os.getcwd(), dict(os.environ)
    os.chdir(directory)
    set_environment(variables)
    try:
        yield
    finally:
        set_environment(environment)
        with contextlib.suppress(OSError):  # the command may have removed it
            os.chdir(before)


def set_environment(variables):
    for name in set(os.environ) - set(variables):
        del os.environ[name]
    for name, value in variables.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def python(arguments):
    """Runs a program as `python` does: code, a module, a file, or what it reads."""
    try:
        kind, what, rest, is_unbuffered = parsed(arguments)
    except Usage as error:
        print(error, file=sys.stderr)
        return 2
    if kind == "version":
        print(VERSION)
        return 0
    if is_unbuffered or os.environ.get("PYTHONUNBUFFERED"):
        unbuffer()
    return Program(kind, what, rest).run()


def unbuffer():
    """Has standard output go on with each write, as `-u` does."""
    raw = sys.stdout.detach().detach()
    sys.stdout = io.TextIOWrapper(raw, "utf-8", "surrogateescape", write_through=True)
    sys.stdout.mode = "w"


def parsed(arguments):
    """What to run: its kind, its name or code, its arguments, and whether it has no buffer."""
    rest, is_unbuffered = list(arguments), False
    while rest:
        word = rest.pop(0)
        if word == "--version" or word.startswith("-V"):
            return "version", None, [], is_unbuffered
        if word == "-":
            return "input", "-", rest, is_unbuffered
        if word == "--":
            break
        if not word.startswith("-"):
            return "file", word, rest, is_unbuffered
        letters = word[1:]
        while letters and letters[0] in ALONE:
            is_unbuffered = is_unbuffered or letters[0] == "u"
            letters = letters[1:]
        if letters[:1] in ("c", "m"):
            what = letters[1:] or (rest.pop(0) if rest else None)
            if what is None:
                raise Usage(f"Argument expected for the -{letters[0]} option")
            return {"c": "code", "m": "module"}[letters[0]], what, rest, is_unbuffered
        if f"-{letters[:1]}" in WITH_VALUE:
            if not letters[1:] and rest:
                del rest[0]
        elif letters:
            raise Usage(f"unknown option {word}")
    kind, what = ("file", rest[0]) if rest else ("input", "")
    return kind, what, rest[1:], is_unbuffered


class Left(BaseException):
    """A program has called `os._exit`, with this status."""


def leave(status):
    """Exit to the system with specified status, without normal exit processing."""
    raise Left(status)


class Program:
    """A program with its own `__main__`, arguments and path."""

    def __init__(self, kind, what, rest):
        self.kind, self.what, self.rest = kind, what, rest

    def run(self):
        """Runs it to its end; the status is that of `python`."""
        kept = sys.argv, sys.path[:], sys.modules.get("__main__")
        others = take_programs_modules()
        exits = os._exit, posix._exit
        os._exit = posix._exit = leave
        sys.argv = [{"code": "-c", "module": "-m"}.get(self.kind, self.what), *self.rest]
        main = types.ModuleType("__main__")
        main.__builtins__ = builtins
        sys.modules["__main__"] = main
        try:
            self.begin(vars(main))
            return 0
        except SystemExit as end:
            return status_of(end)
        except Left as end:
            return int(end.args[0]) & 255
        except Exception as error:
            show(error)
            return 1
        finally:
            sys.argv, sys.path[:], sys.modules["__main__"] = kept
            os._exit, posix._exit = exits
            take_programs_modules()
            sys.modules.update(others)

    def begin(self, namespace):
        if self.kind == "module":
            programs.search(os.getcwd())
            programs.run_module(self.what, namespace)
            return
        if self.kind == "file" and os.path.isdir(self.what):
            programs.run_application(self.what, namespace)
            return
        if self.kind == "file":
            name, source = self.what, self.read()
            programs.search(os.path.dirname(os.path.abspath(name)))
            namespace["__file__"] = name
        else:
            name = "<string>" if self.kind == "code" else "<stdin>"
            source = self.what if self.kind == "code" else sys.stdin.buffer.read()
            programs.search("")
        exec(compile(source, name, "exec", dont_inherit=True), namespace)

    def read(self):
        try:
            with open(self.what, "rb") as file:
                return file.read()
        except OSError as error:
            print(
                f"python: can't open file {os.path.abspath(self.what)!r}: "
                f"[Errno {error.errno}] {error.strerror}",
                file=sys.stderr,
            )
            raise SystemExit(2) from None


def take_programs_modules():
    """Removes the modules that programs have beside them, which another program has not."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and isinstance(file, str) and not file.startswith(SYSTEM):
            found[name] = sys.modules.pop(name)
    return found


def status_of(end):
    if end.code is None or isinstance(end.code, int):
        return (end.code or 0) & 255
    print(end.code, file=sys.stderr)
    return 1


def show(error):
    """Prints the traceback from the program's own code on."""
    frames = error.__traceback__
    while frames is not None and is_ours(frames.tb_frame):
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)


def is_ours(frame):
    return frame.f_globals.get("__name__", "").startswith("_isolet")


def find(name):
    """The command of this name: one of ours, or a tool of the host."""
    if name in OURS:
        return OURS[name]
    tool = tools.functions.get(name)
    return None if not callable(tool) else functools.partial(call_tool, tool)


def call_tool(tool, arguments):
    """Calls a tool with what the words say: `--name value`, `--name=value`, or values in order."""
    params = inspect.signature(tool).parameters
    values, named, words = [], {}, list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("--") or word == "--":
            values.append(word if word != "--" else words.pop(0) if words else "")
            continue
        name, has_value, text = word[2:].partition("=")
        name = name.replace("-", "_") if name not in params else name
        if not has_value:
            text = words.pop(0) if words and not words[0].startswith("--") else "true"
        named[name] = value_of(text, params.get(name))
    order = list(params.values())
    values = [value_of(text, param) for text, param in zip(values, order)] + values[len(order) :]
    try:
        result = tool(*values, **named)
        if inspect.isawaitable(result):
            result = waits.wait_for(result)
    except Exception as error:
        print(f"{tool.__name__}: {error}", file=sys.stderr)
        return 2 if isinstance(error, TypeError) else 1
    if isinstance(result, str):
        print(result)
    elif result is not None:
        print(json.dumps(result, ensure_ascii=False, default=str))
    return 0


def value_of(text, param):
    """A word as the tool's parameter takes it: JSON, unless it is to be a text."""
    if param is None or param.annotation in (str, "str"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


OURS = {"curl": web.curl, "wget": web.wget}
OURS |= dict.fromkeys(("python", "python3", f"python3.{sys.version_info[1]}"), python)
