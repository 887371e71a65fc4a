"""The transports of httpx and httpx2, over the host's network.

httpx's asynchronous one would open connections by the event loop, which has none. Both of httpx2
would use a browser's `fetch`, which follows redirects by itself and knows no timeouts.
"""

import _isolet_exchange as exchange


def patch_httpx(module):
    module.AsyncHTTPTransport.handle_async_request = Handlers(module).handle_async_request


def patch_httpx2(module):
    handlers = Handlers(module)
    module.JavascriptFetchTransport.handle_request = handlers.handle_request
    module.AsyncJavascriptFetchTransport.handle_async_request = handlers.handle_async_request
    # A warning that there are no connection pools and certificates, which the host has.
    module._warn_ignored_options = lambda **options: None


class Handlers:
    """What sends a request, made of the library's own classes, which `module` has imported."""

    def __init__(self, module):
        make_response = module.Response

        class Refused(module.ConnectError, PermissionError):
            """Either of the two, for whoever waits for one of them."""

            __module__, __qualname__ = "isolet", "Refused"

        def attempt(function, *args):
            try:
                return function(*args)
            except OSError as error:
                raise converted(error) from error

        async def attempt_async(function, *args):
            try:
                return await function(*args)
            except OSError as error:
                raise converted(error) from error

        def converted(error):
            """The library's own exception in place of an OSError."""
            if isinstance(error, PermissionError):
                return Refused(str(error))
            kind = module.ReadTimeout if isinstance(error, TimeoutError) else module.ConnectError
            return kind(str(error))

        class Body(module.SyncByteStream, module.AsyncByteStream):
            __module__ = "isolet"

            def __init__(self, exchange):
                self.exchange = exchange

            def __iter__(self):
                while piece := attempt(self.exchange.read):
                    yield piece
                self.exchange.close()

            async def __aiter__(self):
                while piece := await attempt_async(self.exchange.read_async):
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
            one, has_body = attempt(start, request)
            if has_body:
                for piece in request.stream:
                    if piece and not attempt(sent, one, piece):
                        break
                else:
                    attempt(sent, one, b"")
            return response(one, attempt(one.head))

        async def handle_async_request(self, request):
            one, has_body = attempt(start, request)
            if has_body:
                async for piece in request.stream:
                    if piece and not await attempt_async(sent_async, one, piece):
                        break
                else:
                    await attempt_async(sent_async, one, b"")
            return response(one, await attempt_async(one.head_async))

        self.handle_request = handle_request
        self.handle_async_request = handle_async_request


def start(request):
    """Starts an exchange; also says whether the request has a body."""
    headers = [(name.decode("latin-1"), value) for name, value in request.headers.raw]
    names = {name.lower() for name, _ in headers}
    body = names & {"content-length", "transfer-encoding"} and True or None
    headers = [pair for pair in headers if pair[0].lower() != "transfer-encoding"]
    timeout = request.extensions.get("timeout", {}).get("read")
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
