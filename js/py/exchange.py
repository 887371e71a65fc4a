"""HTTP exchanges with the host: one request, one response, both bodies in pieces.

The host decides what may be requested, follows no redirect here, and says no with an exception.
"""

import errno
import weakref
from _socket import EAI_NONAME, gaierror
from marshal import dumps

import _isolet_tools as tools
import _isolet_waits as waits

MARSHAL_VERSION = 2
BYTES_HEADER = bytes.__basicsize__ - 1
CHUNK = 256 * 1024  # bytes that are read at a time

bridge = None
opened = weakref.WeakSet()  # exchanges that may be open

# The errno that CPython's own sockets give an exception, which comes from the host without one.
# By name, because a session has other numbers than the interpreter before it.
ERRNOS = {
    ConnectionRefusedError: "ECONNREFUSED",
    ConnectionResetError: "ECONNRESET",
    ConnectionAbortedError: "ECONNABORTED",
}


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def connect(host, port, timeout=None):
    """Connects to a server, for the next request to it."""
    call = bridge.net_connect(host, port)
    try:
        size = waits.answered(call, milliseconds(timeout))
    except BaseException:
        bridge.net_close(call)
        raise
    connected(call, size)


async def connect_async(host, port, timeout=None):
    call = bridge.net_connect(host, port)
    try:
        size = await bridge.answered(call, milliseconds(timeout))
    except BaseException:
        bridge.net_close(call)
        raise
    connected(call, size)


def connected(call, size):
    if size < 0:
        bridge.net_close(call)
        raise TimeoutError("timed out")
    taken(call, size)


def taken(call, size):
    """What a call is answered with. An exception is as CPython's sockets raise it."""
    try:
        return tools.take(call, size)
    except gaierror:
        raise gaierror(EAI_NONAME, "Name or service not known") from None
    except OSError as error:
        name = ERRNOS.get(type(error))
        if name is None:
            raise
        raise type(error)(getattr(errno, name), str(error)) from None


def milliseconds(timeout):
    return -1 if timeout is None else max(0, timeout * 1000)


class Exchange:
    """Starts when it is made. `timeout`, in seconds, is for each wait; None is the host's own."""

    def __init__(self, method, url, headers, body=None, timeout=None):
        """Starts it: `headers` are pairs of str and bytes, `body` is bytes, None, or True for one
        in pieces.
        """
        request = {"method": method, "url": url, "headers": headers, "body": body}
        data = dumps(request, MARSHAL_VERSION)
        self.timeout, self.url = timeout, url
        self.number = bridge.net_start(id(data) + BYTES_HEADER, len(data))
        self.call = self.number
        opened.add(self)

    def send(self, piece):
        """Sends a piece of the body; an empty one ends it. The response may come all the same."""
        self.wait(self.start_send(piece), False)

    def head(self):
        """The head of the response: status, reason, url, headers."""
        return self.wait(self.call)

    def read(self, limit=CHUNK):
        """The next piece of the response's body; empty at the end."""
        return self.wait(bridge.net_read(self.open_number(), min(limit, CHUNK)))

    async def send_async(self, piece):
        await self.wait_async(self.start_send(piece))

    async def head_async(self):
        return await self.wait_async(self.call)

    async def read_async(self):
        return await self.wait_async(bridge.net_read(self.open_number(), CHUNK))

    def close(self):
        number, self.number = self.number, None
        if number is not None:
            bridge.net_close(number)

    def start_send(self, piece):
        piece = bytes(piece)
        return bridge.net_send(self.open_number(), id(piece) + BYTES_HEADER, len(piece))

    def open_number(self):
        if self.number is None:
            raise OSError(errno.EBADF, "the exchange is closed")
        return self.number

    def wait(self, call, is_last=True):
        try:
            size = waits.answered(call, milliseconds(self.timeout))
        except BaseException:
            self.close()
            raise
        return self.take(call, size, is_last)

    async def wait_async(self, call):
        try:
            size = await bridge.answered(call, milliseconds(self.timeout))
        except BaseException:
            self.close()
            raise
        return self.take(call, size)

    def take(self, call, size, is_last=True):
        if size < 0:
            self.close()
            raise TimeoutError("timed out")
        try:
            return taken(call, size)
        except BaseException:
            if is_last:
                self.close()
            raise

    def __del__(self):
        if self.number is not None:
            self.close()
