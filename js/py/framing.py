"""The body of a request as a client frames it: by a length, or in chunks."""

import errno

MAX_WHOLE_BODY = 1024 * 1024  # bytes of a body that is sent in one piece
MAX_CHUNK_LINE = 256  # bytes of the line that tells a chunk's size


class Outgoing:
    """Finds the body in what the client writes and sends it on; `start` begins the exchange."""

    def __init__(self, headers, start):
        self.start = start
        self.headers = headers
        self.done = False
        self.exchange = None
        named = {name.lower(): value for name, value in headers}
        self.chunked = named.get("transfer-encoding", b"").lower() == b"chunked"
        self.missing = 0 if self.chunked else int(named.get("content-length", b"0"))
        self.in_chunk = 0  # bytes of the current chunk still to come, its line end included
        if self.chunked:
            self.headers = [pair for pair in headers if pair[0].lower() != "transfer-encoding"]

    def advance(self, data):
        """Takes what it can of `data`; whether the request is now complete for the first time."""
        if self.done:
            if data:
                raise OSError(errno.EPIPE, "the request was complete, and the connection is closed")
            return False
        if self.exchange is None:
            if not self.chunked and self.missing <= MAX_WHOLE_BODY:
                if len(data) < self.missing:
                    return False
                body = bytes(data[: self.missing])
                del data[: self.missing]
                self.done = True
                self.exchange = self.start(self.headers, body or None)
                return True
            self.exchange = self.start(self.headers, True)
        self.done = self.stream_chunks(data) if self.chunked else self.stream_rest(data)
        if self.done:
            self.send(b"")
        return self.done

    def stream_rest(self, data):
        piece = bytes(data[: self.missing])
        del data[: self.missing]
        if piece:
            self.send(piece)
        self.missing -= len(piece)
        return self.missing == 0

    def stream_chunks(self, data):
        while True:
            if self.in_chunk == 0:
                end = data.find(b"\r\n")
                if end < 0:
                    if len(data) > MAX_CHUNK_LINE:
                        raise ValueError("the size of a chunk is missing")
                    return False
                size = int(bytes(data[:end]).split(b";")[0], 16)
                if size == 0:
                    if len(data) < end + 4:
                        return False
                    data.clear()
                    return True
                del data[: end + 2]
                self.in_chunk = size + 2
            piece = bytes(data[: max(0, self.in_chunk - 2)])
            if not data:
                return False
            used = min(len(data), self.in_chunk)
            del data[:used]
            self.in_chunk -= used
            if piece:
                self.send(piece)

    def send(self, piece):
        """A server may answer before it has read everything, and clients know how to go on then."""
        try:
            self.exchange.send(piece)
        except ConnectionResetError as error:
            raise BrokenPipeError(errno.EPIPE, str(error)) from None
