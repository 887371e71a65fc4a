"""Sockets that carry HTTP: what Python's clients write is a request to the host, what they read its
response.

There is no connection in the guest, and no TLS: both are the host's. Anything that is not HTTP is
refused.
"""

import _socket
import errno
import socket as socket_module

import _isolet_exchange as exchange
from _isolet_framing import Outgoing

MAX_HEAD = 64 * 1024  # bytes of a request's head
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "trailer"}

Plain = socket_module.socket
plain_getaddrinfo = socket_module.getaddrinfo
names = {}  # made-up address: name


def install():
    """Puts the HTTP sockets in place of those that lead nowhere."""
    socket_module.socket = socket_module.SocketType = Socket
    socket_module.getaddrinfo = getaddrinfo
    socket_module.gethostbyname = lambda host: address_of(str(host))


def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
    """Makes an address up for a name: the host resolves it, for the request, if that is allowed."""
    if isinstance(host, bytes):
        host = host.decode("ascii")
    if not host or type not in (0, socket_module.SOCK_STREAM):
        return plain_getaddrinfo(host, port, family, type, proto, flags)
    port = port_number(port)
    stream = (socket_module.SOCK_STREAM, socket_module.IPPROTO_TCP, "")
    if ":" in host:
        return [(socket_module.AF_INET6, *stream, (host, port, 0, 0))]
    if family == socket_module.AF_INET6:
        raise socket_module.gaierror(-2, "Name or service not known")
    return [(socket_module.AF_INET, *stream, (address_of(host), port))]


def port_number(port):
    if isinstance(port, (str, bytes)):
        return {"http": 80, "https": 443}.get(str(port)) or int(port)
    return port or 0


def address_of(host):
    """An IPv4 address that stands for a name; one that is an address stands for itself."""
    try:
        _socket.inet_aton(host)
        return host
    except OSError:
        pass
    for address, name in names.items():
        if name == host:
            return address
    number = len(names) + 1
    address = f"198.18.{number // 256 % 256}.{number % 256}"
    names[address] = host
    return address


class Socket(Plain):
    """A stream socket whose peer speaks HTTP/1.1. Others are as Pyodide has them.

    The host connects, and keeps the connection for the request.
    """

    __slots__ = (
        *("_peer", "_tls", "_timeout", "_sent", "_request", "_exchange", "_has_head"),
        *("_is_chunked", "_received", "_failure"),
        "__dict__",
    )

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        super().__init__(family, type, proto, fileno)
        self._peer = None
        self._tls = False
        self._timeout = socket_module.getdefaulttimeout()
        self._reset()

    def _reset(self):
        self._sent = bytearray()  # not yet understood
        self._request = None
        self._exchange = None
        self._has_head = False
        self._is_chunked = False
        self._received = b""
        self._failure = None  # what became of the request, for clients that ask twice

    def _is_stream(self):
        internet = (socket_module.AF_INET, socket_module.AF_INET6)
        return self.family in internet and self.type == socket_module.SOCK_STREAM

    def connect(self, address):
        if not self._is_stream():
            return super().connect(address)
        host, port = names.get(address[0], address[0]), port_number(address[1])
        refusal = exchange.bridge.net_check(host, port)
        if refusal:
            raise PermissionError(refusal)
        # One that does not wait gets its connection with the request.
        if self._timeout != 0:
            exchange.connect(host, port, self._timeout)
        self._peer = (host, port)

    def connect_ex(self, address):
        if not self._is_stream():
            return super().connect_ex(address)
        try:
            self.connect(address)
        except PermissionError:
            return errno.EACCES
        except TimeoutError:
            return errno.EAGAIN
        except socket_module.gaierror:
            raise
        except OSError as error:
            if error.errno is None:
                raise
            return error.errno
        return 0

    def getpeername(self):
        return self._connected()

    def getsockname(self):
        return super().getsockname() if self._peer is None else ("127.0.0.1", 0)

    def setsockopt(self, *args):
        if not self._is_stream():
            super().setsockopt(*args)

    def settimeout(self, timeout):
        if timeout is not None and timeout < 0:
            raise ValueError("Timeout value out of range")
        self._timeout = timeout
        if self._exchange is not None:
            self._exchange.timeout = timeout

    def gettimeout(self):
        return self._timeout

    timeout = property(gettimeout)

    def setblocking(self, flag):
        self.settimeout(None if flag else 0.0)

    def getblocking(self):
        return self._timeout != 0

    def shutdown(self, how):
        self._connected()

    def send(self, data, flags=0):
        if not self._is_stream():
            return super().send(data, flags)
        self._connected()
        self._sent += memoryview(data).cast("B")
        self._advance()
        return len(data)

    def sendall(self, data, flags=0):
        if not self._is_stream():
            return super().sendall(data, flags)
        self.send(data, flags)

    def recv(self, limit, flags=0):
        if not self._is_stream():
            return super().recv(limit, flags)
        self._connected()
        if self._failure is not None:
            raise self._failure
        if self._request is None:
            if self._sent:
                raise self._refusal()
            return b""
        if not self._received and self._exchange is not None:
            try:
                self._received = self._next()
            except ConnectionAbortedError:
                self._end()  # the server has closed the connection early, which clients notice
            except OSError as error:
                self._failure = error
                raise
        piece, self._received = self._received[:limit], self._received[limit:]
        return piece

    def recv_into(self, buffer, limit=0, flags=0):
        view = memoryview(buffer).cast("B")
        piece = self.recv(limit or len(view), flags)
        view[: len(piece)] = piece
        return len(piece)

    def _end(self):
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.close()

    def _real_close(self, *args):
        self._end()
        super()._real_close(*args)

    def detach(self):
        raise OSError(errno.EOPNOTSUPP, "the socket is the host's and cannot be detached")

    def _connected(self):
        if self._peer is None:
            raise OSError(errno.ENOTCONN, "Socket not connected")
        return self._peer

    # What ssl's own sockets have besides.

    def version(self):
        return "TLSv1.3" if self._tls else None

    def getpeercert(self, binary_form=False):
        return b"" if binary_form else {}

    def cipher(self):
        return ("TLS_AES_256_GCM_SHA384", "TLSv1.3", 256) if self._tls else None

    def selected_alpn_protocol(self):
        return None

    def do_handshake(self, block=False):
        pass

    def unwrap(self):
        return self

    # What was written, as far as it is a request.

    def _advance(self):
        if self._request is None:
            end = self._sent.find(b"\r\n\r\n")
            if end < 0:
                if len(self._sent) > MAX_HEAD or not looks_like_http(self._sent):
                    raise self._refusal()
                return
            head = bytes(self._sent[:end])
            del self._sent[: end + 4]
            self._begin(head)
        try:
            self._request.advance(self._sent)
        except BrokenPipeError:
            raise  # there may be an answer
        except OSError as error:
            self._failure = error
            raise

    def _begin(self, head):
        lines = head.decode("latin-1").split("\r\n")
        parts = lines[0].split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1"):
            raise self._refusal()
        method, target, _ = parts
        headers = []
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise ValueError(f"a header line has no colon: {line[:100]!r}")
            headers.append((name, value.strip(" \t").encode("latin-1")))
        if not target.startswith("/"):
            raise OSError(errno.EOPNOTSUPP, "a request through a proxy is not supported")
        host, port = self._peer
        host = f"[{host}]" if ":" in host else host
        url = f"{'https' if self._tls else 'http'}://{host}:{port}{target}"

        def start(headers, body):
            self._exchange = exchange.Exchange(method, url, headers, body, self._timeout)
            return self._exchange

        self._request = Outgoing(headers, start)

    # What is read: the response as a server writes it.

    def _next(self):
        """The next bytes of the response; none at its end."""
        if not self._has_head:
            head = self._exchange.head()
            self._has_head = True
            return self._head(head)
        piece = self._exchange.read()
        if not piece:
            self._end()
        if self._is_chunked:
            return b"%x\r\n%b\r\n" % (len(piece), piece)
        return piece

    def _head(self, head):
        lines = [f"HTTP/1.1 {head['status']} {head['reason']}".encode("latin-1")]
        for name, value in head["headers"]:
            name = name.lower()
            # So that a body which is cut off can be told from one that ends.
            if name == "transfer-encoding" and value.lower() == b"chunked":
                self._is_chunked = True
            elif name in HOP_BY_HOP:
                continue
            lines.append(name.title().encode("latin-1") + b": " + value)
        lines += [b"Connection: close", b"", b""]
        return b"\r\n".join(lines)

    def _refusal(self):
        host, port = self._peer
        message = (
            f"network access to {host}:{port} is not allowed; sockets carry HTTP requests only"
        )
        return PermissionError(message)


def looks_like_http(data):
    """Whether these first bytes may be those of a request line."""
    method = bytes(data[:32]).split(b" ")[0]
    return method.isalpha() and method.isupper()


def wrap(context, sock, server_side=False, *, server_hostname=None):
    """What `SSLContext.wrap_socket` does: from here on the host speaks TLS to the server."""
    if server_side:
        raise OSError(errno.EOPNOTSUPP, "a server cannot run here")
    host = sock._connected()[0]
    if server_hostname is not None and str(server_hostname).rstrip(".") != host.rstrip("."):
        raise OSError(
            errno.EOPNOTSUPP, f"the certificate is checked for {host}, not for {server_hostname}"
        )
    sock._tls = True
    sock.context = context
    sock.server_hostname = server_hostname
    return sock
