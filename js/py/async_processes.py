"""`asyncio.create_subprocess_exec` and `_shell`: each command runs in a thread of its own."""

import asyncio
import os
import subprocess
import threading

import _isolet_processes as processes
import _isolet_shell as system_shell

INPUT, OUTPUT, ERRORS = range(3)


class Input(asyncio.WriteTransport):
    """The input of a command, whose thread waits for it."""

    def __init__(self):
        super().__init__()
        self.pieces, self.is_closed = [], False
        self.changed = threading.Event()

    def write(self, data):
        self.pieces.append(bytes(data))
        self.changed.set()

    def read(self):
        """What was written, or nothing at the end."""
        while not self.pieces and not self.is_closed:
            self.changed.wait()
            self.changed.clear()
        found, self.pieces = b"".join(self.pieces), []
        return found

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.close()

    def close(self):
        self.is_closed = True
        self.changed.set()

    abort = close

    def is_closing(self):
        return self.is_closed

    def get_write_buffer_size(self):
        return sum(map(len, self.pieces))


class Output(asyncio.ReadTransport):
    """The output of a command."""

    def __init__(self, number):
        super().__init__()
        self.number, self.is_closed = number, False
        self.reading, self.writing = os.pipe()

    def is_closing(self):
        return self.is_closed

    def close(self):
        self.is_closed = True


class Process(asyncio.SubprocessTransport):
    """A command that runs in a thread."""

    def __init__(self, loop, protocol, run, stdin, stdout, stderr):
        super().__init__()
        processes.next_pid += 1
        self.pid, self.loop, self.protocol, self.run = processes.next_pid, loop, protocol, run
        self.status, self.waiters = None, []
        self.control = system_shell.Control()
        self.owned = []
        self.outputs = {}
        run["out"] = self.target(OUTPUT, stdout, 1)
        run["err"] = run["out"] if stderr == subprocess.STDOUT else self.target(ERRORS, stderr, 2)
        self.input = Input() if stdin == subprocess.PIPE else None
        run["stdin"] = self.source(stdin)
        protocol.connection_made(self)
        threading.Thread(target=self.carry_out, daemon=True).start()

    def source(self, stdin):
        """What the command reads."""
        if self.input is not None:
            return self.input.read
        if stdin is None:
            return system_shell.inherited()
        if stdin == subprocess.DEVNULL:
            return b""
        return system_shell.read_all(stdin if isinstance(stdin, int) else stdin.fileno())

    def target(self, number, where, inherited):
        """The descriptor that this output goes to."""
        if where is None:
            return inherited
        if where == subprocess.PIPE:
            self.outputs[number] = output = Output(number)
            return output.writing
        if where == subprocess.DEVNULL:
            self.owned.append(os.open(os.devnull, os.O_WRONLY))
            return self.owned[-1]
        return where if isinstance(where, int) else where.fileno()

    def carry_out(self):
        """The thread of the command."""
        status = 1
        try:
            status = system_shell.run(**self.run, control=self.control, between=self.pass_on)
        finally:
            self.pass_on()
            for output in self.outputs.values():
                os.close(output.writing)
                os.close(output.reading)
            for end in self.owned:
                os.close(end)
            self.loop.call_soon_threadsafe(self.has_ended, status)

    def pass_on(self):
        """Gives the reader what the command has printed."""
        for number, output in self.outputs.items():
            data = system_shell.read_all(output.reading)
            if data:
                receive = self.protocol.pipe_data_received
                self.loop.call_soon_threadsafe(receive, number, data)

    def has_ended(self, status):
        self.status = processes.KILLED if status is None else status
        for number in self.outputs:
            self.protocol.pipe_connection_lost(number, None)
        if self.input is not None:
            self.protocol.pipe_connection_lost(INPUT, None)
        self.protocol.process_exited()
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(self.status)
        self.protocol.connection_lost(None)

    async def _wait(self):
        if self.status is None:
            waiter = self.loop.create_future()
            self.waiters.append(waiter)
            await waiter
        return self.status

    def get_pid(self):
        return self.pid

    def get_returncode(self):
        return self.status

    def get_pipe_transport(self, fd):
        return self.input if fd == INPUT else self.outputs.get(fd)

    def is_closing(self):
        return self.status is not None

    def close(self):
        if self.status is None:
            self.kill()

    def send_signal(self, signal):
        if self.status is not None:
            raise ProcessLookupError
        self.control.kill()
        if self.input is not None:
            self.input.close()

    def terminate(self):
        self.send_signal(15)

    def kill(self):
        self.send_signal(9)


def start(loop, protocol_factory, args, shell, stdin, stdout, stderr, options):
    executable = options.get("executable")
    script, name, arguments = processes.parts_of(args, shell, executable)
    place = processes.place_of(options.get("env"), options.get("cwd"))
    run = {"script": script, "name": name, "arguments": arguments, **place}
    process = Process(loop, protocol_factory(), run, stdin, stdout, stderr)
    return process, process.protocol


def install(loop):
    """Gives a class of event loops its two methods."""
    PIPE = subprocess.PIPE

    async def subprocess_shell(
        self, protocol_factory, cmd, *, stdin=PIPE, stdout=PIPE, stderr=PIPE, **options
    ):
        return start(self, protocol_factory, cmd, True, stdin, stdout, stderr, options)

    async def subprocess_exec(
        self, protocol_factory, program, *args, stdin=PIPE, stdout=PIPE, stderr=PIPE, **options
    ):
        words = [program, *args]
        return start(self, protocol_factory, words, False, stdin, stdout, stderr, options)

    for method in (subprocess_shell, subprocess_exec):
        setattr(loop, method.__name__, method)
