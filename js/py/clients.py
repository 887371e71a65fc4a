"""Python's HTTP clients over the host's network: each is given the piece that it lacks here."""

import io
import ssl

import _isolet_imports as imports
import _isolet_sockets as sockets
import _isolet_transports as transports

PERMISSION = "PermissionError"


def install():
    """Prepares sockets, and the clients for when they are imported."""
    sockets.install()
    ssl.SSLContext.wrap_socket = wrap_socket
    imports.PATCHES.update(PATCHES)


plain_wrap_socket = ssl.SSLContext.wrap_socket


def wrap_socket(
    self,
    sock,
    server_side=False,
    do_handshake_on_connect=True,
    suppress_ragged_eofs=True,
    server_hostname=None,
    session=None,
):
    if isinstance(sock, sockets.Socket):
        return sockets.wrap(self, sock, server_side, server_hostname=server_hostname)
    return plain_wrap_socket(self, sock, server_side, server_hostname=server_hostname)


def patch_urllib(module):
    """A refusal is a PermissionError, not the URLError that every OSError becomes."""
    do_open = module.AbstractHTTPHandler.do_open

    def do_open_or_refuse(self, *args, **kwargs):
        try:
            return do_open(self, *args, **kwargs)
        except module.URLError as error:
            if isinstance(error.reason, PermissionError):
                raise error.reason from None
            raise

    module.AbstractHTTPHandler.do_open = do_open_or_refuse


def patch_urllib3(module):
    """urllib3 would use a browser's `fetch`; with its own connections it can do more."""
    module.inject_into_urllib3 = lambda: None


def patch_pyodide_http(module):
    from pyodide.ffi import JsException

    fetch = module._jsfetch

    async def fetch_or_refuse(*args):
        try:
            return await fetch(*args)
        except JsException as error:
            if error.name == PERMISSION:
                raise PermissionError(error.message) from None
            raise

    module._jsfetch = fetch_or_refuse


def patch_open_url(module):
    module.open_url = open_url


def open_url(url):
    """The text at an address, synchronously."""
    import urllib.request

    with urllib.request.urlopen(url) as response:
        return io.StringIO(response.read().decode("utf-8", "replace"))


PATCHES = {
    "urllib.request": patch_urllib,
    "urllib3.contrib.emscripten": patch_urllib3,
    "pyodide.http._pyfetch": patch_pyodide_http,
    "pyodide.http": patch_open_url,
    "httpx._transports.default": transports.patch_httpx,
    "httpx2_jsfetch": transports.patch_httpx2,
}
