"""What programs start processes with, `subprocess`, `os.system` and others: a shell runs instead.

A command runs when it is started. With a pipe it runs when somebody waits for it or its output: its
input is there by then.
"""

import contextlib
import errno
import functools
import io
import os
import posix
import sys

import _isolet_shell as system_shell

SHELLS = ("sh", "bash")

KILLED = -9  # the status of what a time limit has ended

next_pid = 100
limit = None  # how long the next command may take, in seconds


def install(patches):
    """Prepares the modules for when they are imported."""
    patches["subprocess"] = patch_subprocess
    patches["shutil"] = patch_shutil
    os.system = posix.system = system


def system(command):
    """Execute the command in a subshell."""
    return system_shell.run(os.fsdecode(command), stdin=system_shell.inherited()) << 8


def patch_shutil(module):
    find = module.which

    def which(cmd, mode=os.F_OK | os.X_OK, path=None):
        found = find(cmd, mode, path)
        name = os.fspath(cmd)
        is_name = isinstance(name, str) and "/" not in name
        if found is None and is_name and system_shell.is_known(name):
            found = f"/usr/bin/{name}"
        return found

    which.__doc__ = find.__doc__
    module.which = which


class Input(io.FileIO):
    """A pipe to a command, which begins when this is closed."""

    def __init__(self, fd, begin):
        super().__init__(fd, "wb")
        self.begin = begin

    def close(self):
        if not self.closed:
            super().close()
            self.begin()


class Output(io.FileIO):
    """A pipe from a command, which begins at the latest when this is read."""

    def __init__(self, fd, begin):
        super().__init__(fd, "rb")
        self.begin = begin

    def readinto(self, buffer):
        self.begin()
        return super().readinto(buffer) or 0  # nothing more comes once it has run

    def readall(self):
        self.begin()
        return system_shell.read_all(self.fileno())

    def read(self, size=-1):
        return self.readall() if size is None or size < 0 else super().read(size) or b""


def around(stream, kind, begin):
    """The same stream over a file that begins the command."""
    if stream is None:
        return None
    with stream:
        file = kind(os.dup(stream.fileno()), begin)
    buffer = io.BufferedWriter(file) if kind is Input else io.BufferedReader(file)
    if not isinstance(stream, io.TextIOWrapper):
        return buffer
    return io.TextIOWrapper(
        buffer,
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=kind is Input,
    )


def descriptor(end, inherited):
    return inherited if end == -1 else end


def parts_of(args, shell, executable=None):
    """The script that runs these arguments of `Popen`, its name, and its own arguments."""
    words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
    words = [os.fsdecode(word) for word in words]
    if shell:
        return words[0], "/bin/sh", words[1:]
    program = os.fsdecode(executable or words[0])
    if program == sys.executable:
        program = "python3"
    if os.path.basename(program) in SHELLS and words[1:2] in (["-c"], ["-lc"]) and words[2:]:
        return words[2], (words[3:4] or [program])[0], words[4:]
    if "/" not in program and not system_shell.is_known(program):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
    return '"$@"', "sh", [program, *words[1:]]


def place_of(env, cwd):
    """The environment and the directory of a command, as texts."""
    return {
        "env": env and {os.fsdecode(name): os.fsdecode(env[name]) for name in env},
        "cwd": cwd and os.fsdecode(cwd),
    }


def patch_subprocess(module):
    class Popen(module.Popen):
        run = None  # what has not begun

        def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env,
                           startupinfo, creationflags, shell, p2cread, p2cwrite, c2pread, c2pwrite,
                           errread, errwrite, *_):  # fmt: skip
            global next_pid, limit
            next_pid += 1
            script, name, arguments = parts_of(args, shell, executable)
            self.run = {
                "script": script,
                "arguments": arguments,
                "name": name,
                "out": descriptor(c2pwrite, 1),
                "err": descriptor(errwrite, 2),
                **place_of(env, cwd),
            }
            self.pid, self._child_created, self.input = next_pid, True, p2cread
            self.limit, self.is_late, limit = limit, False, None
            pairs = [(p2cwrite, p2cread), (c2pread, c2pwrite), (errread, errwrite)]
            self.ends = {end for ours, end in pairs if ours != -1}
            if hasattr(self, "_devnull"):
                self.ends.add(self._devnull)
            self._closed_child_pipe_fds = True
            self.stdin = around(self.stdin, Input, self.begin)
            self.stdout = around(self.stdout, Output, self.begin)
            self.stderr = around(self.stderr, Output, self.begin)
            if self.stdin is None and self.stdout is None and self.stderr is None:
                self.begin()

        def begin(self, timeout=None):
            """Runs the command, if it has not run yet."""
            run, self.run = self.run, None
            if run is None:
                return
            control = system_shell.Control(self.limit if timeout is None else timeout)
            try:
                inherits, end = self.input == -1, self.input
                stdin = system_shell.inherited() if inherits else system_shell.read_all(end)
                status = system_shell.run(stdin=stdin, control=control, **run)
                self.is_late = status is None
                self.returncode = KILLED if self.is_late else status
            finally:
                self.close_ends()

        def __del__(self, **_):
            with contextlib.suppress(Exception):
                self.begin()
            super().__del__()

        def close_ends(self):
            for end in self.ends:
                os.close(end)
            self.ends = ()

        def communicate(self, input=None, timeout=None):
            if self.stdin is not None and not self.stdin.closed:
                if input:
                    self.stdin.write(input)
                self.stdin.flush()
            self.begin(timeout)
            if self.stdin is not None:
                self.stdin.close()
            self._communication_started = True
            streams = self.stdout, self.stderr
            found = tuple(stream and read_and_close(stream) for stream in streams)
            self.fail_if_late(timeout, *found)
            return found

        def wait(self, timeout=None):
            self.begin(timeout)
            self.fail_if_late(timeout)
            return self.returncode

        def fail_if_late(self, timeout, *found):
            if self.is_late and timeout is not None:
                self.is_late = False
                raise module.TimeoutExpired(self.args, timeout, *found)

        def poll(self):
            if self.stdin is None or self.stdin.closed:
                self.begin()
            return self.returncode

        def _internal_poll(self, _deadstate=None):
            return self.returncode

        def send_signal(self, sig):
            """Ends a command that has not begun; others have ended."""
            if self.run is not None:
                self.run, self.returncode = None, -sig
                self.close_ends()

    def limited(function):
        """Tells a command from its beginning how long it may take."""

        def run(*args, timeout=None, **options):
            global limit
            before, limit = limit, timeout
            try:
                return function(*args, timeout=timeout, **options)
            finally:
                limit = before

        return functools.wraps(function)(run)

    Popen.__doc__, Popen.__module__ = module.Popen.__doc__, module.__name__
    Popen.communicate.__doc__ = module.Popen.communicate.__doc__
    module.Popen = Popen
    module.run, module.call = limited(module.run), limited(module.call)
    module._can_fork_exec = True


def read_and_close(stream):
    with stream:
        return stream.read()
