"""The transports of httpx and httpx2, over the host's network.

httpx's asynchronous one would open connections by the event loop, which has none. Both of httpx2
would use a browser's `fetch`, which follows redirects by itself and knows no timeouts.
"""

import sys

import _isolet_exchange as exchange


def patch_httpx(module):
    handlers = Handlers(module, "httpx")
    module.AsyncHTTPTransport.handle_async_request = handlers.handle_async_request


def patch_httpx2(module):
    handlers = Handlers(module, "httpx2")
    module.JavascriptFetchTransport.handle_request = handlers.handle_request
    module.AsyncJavascriptFetchTransport.handle_async_request = handlers.handle_async_request
    # A warning that there are no connection pools and certificates, which the host has.
    module._warn_ignored_options = lambda **options: None


class Handlers:
    """What sends a request, made of the library's own classes. `module` has imported some of them,
    and once it is loaded the package has all.
    """

    def __init__(self, module, package):
        make_response = module.Response

        class Refused(module.ConnectError, PermissionError):
            """Either of the two, for whoever waits for one of them."""

            __module__, __qualname__ = "isolet", "Refused"

        # What becomes of a time-out and of another OSError: while connecting, sending, receiving.
        connecting = "ConnectTimeout", "ConnectError"
        sending = "WriteTimeout", "WriteError"
        receiving = "ReadTimeout", "ReadError"

        def attempt(kinds, function, *args):
            try:
                return function(*args)
            except OSError as error:
                raise converted(error, kinds) from error

        async def attempt_async(kinds, function, *args):
            try:
                return await function(*args)
            except OSError as error:
                raise converted(error, kinds) from error

        def converted(error, kinds):
            """The library's own exception in place of an OSError."""
            if isinstance(error, PermissionError):
                return Refused(str(error))
            if isinstance(error, TimeoutError):
                name = kinds[0]
            elif isinstance(error, ConnectionAbortedError):
                name = "RemoteProtocolError"
            elif isinstance(error, ConnectionRefusedError):
                name = "ConnectError"  # also where a connection was made again
            else:
                name = kinds[1]
            return getattr(sys.modules[package], name)(error.strerror or str(error))

        class Body(module.SyncByteStream, module.AsyncByteStream):
            __module__ = "isolet"

            def __init__(self, exchange):
                self.exchange = exchange

            def __iter__(self):
                while piece := attempt(receiving, self.exchange.read):
                    yield piece
                self.exchange.close()

            async def __aiter__(self):
                while piece := await attempt_async(receiving, self.exchange.read_async):
                    yield piece
                self.exchange.close()

            def close(self):
                self.exchange.close()

            async def aclose(self):
                self.exchange.close()

        def response(one, head):
            return make_response(
                status_code=head["status"],
                headers=[(name.encode("latin-1"), value) for name, value in head["headers"]],
                stream=Body(one),
                extensions={"http_version": b"HTTP/1.1", "reason_phrase": head["reason"].encode()},
            )

        def handle_request(self, request):
            timeouts = times(request)
            attempt(connecting, exchange.connect, *server(request), timeouts.get("connect"))
            one, has_body = attempt(sending, start, request, timeouts.get("write"))
            if has_body:
                for piece in request.stream:
                    if piece and not attempt(sending, sent, one, piece):
                        break
                else:
                    attempt(sending, sent, one, b"")
            one.timeout = timeouts.get("read")
            return response(one, attempt(receiving, one.head))

        async def handle_async_request(self, request):
            timeouts = times(request)
            connect = exchange.connect_async
            await attempt_async(connecting, connect, *server(request), timeouts.get("connect"))
            one, has_body = attempt(sending, start, request, timeouts.get("write"))
            if has_body:
                async for piece in request.stream:
                    if piece and not await attempt_async(sending, sent_async, one, piece):
                        break
                else:
                    await attempt_async(sending, sent_async, one, b"")
            one.timeout = timeouts.get("read")
            return response(one, await attempt_async(receiving, one.head_async))

        self.handle_request = handle_request
        self.handle_async_request = handle_async_request


def times(request):
    """The seconds that each step may take; None or missing for as long as the host allows."""
    return request.extensions.get("timeout", {})


def server(request):
    """Host and port of a request. One to another scheme is the host's to refuse."""
    return request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)


def start(request, timeout):
    """Starts an exchange; also says whether the request has a body."""
    headers = [(name.decode("latin-1"), value) for name, value in request.headers.raw]
    names = {name.lower() for name, _ in headers}
    body = names & {"content-length", "transfer-encoding"} and True or None
    headers = [pair for pair in headers if pair[0].lower() != "transfer-encoding"]
    return exchange.Exchange(request.method, str(request.url), headers, body, timeout), body


def sent(one, piece):
    """Sends a piece of the body. False if no more is taken: the head says why, or is an answer."""
    try:
        one.send(piece)
    except TimeoutError:
        raise
    except (OSError, ValueError):
        return False
    return True


async def sent_async(one, piece):
    try:
        await one.send_async(piece)
    except TimeoutError:
        raise
    except (OSError, ValueError):
        return False
    return True
