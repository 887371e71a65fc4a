"""A server of names, DNS over UDP, for the proxies that find their nodes so."""

from __future__ import annotations

import socket
import struct
import threading

A, IN, NO_SUCH_NAME = 1, 1, 3


class Names:
    """Says which addresses names have, for as long as the block runs. `table` may change; `asked`
    has every name that somebody has asked for."""

    def __init__(self, table: dict[str, list[str]]):
        self.table = table
        self.asked: set[str] = set()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Names:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # It wakes the thread, which then ends.
        self._socket.sendto(b"", self._socket.getsockname())

    def _serve(self) -> None:
        with self._socket:
            while True:
                query, client = self._socket.recvfrom(4096)
                if not query:
                    return
                self._socket.sendto(self._answer(query), client)

    def _answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        question = query[12 : at + 5]
        name = ".".join(labels).lower()
        self.asked.add(name)
        addresses = self.table.get(name)
        kind = struct.unpack_from("!H", query, at + 1)[0]
        found = addresses if addresses and kind == A else []
        # A response to this query, by who has the names, without more of them.
        flags = 0x8580 | (NO_SUCH_NAME if addresses is None else 0)
        head = query[:2] + struct.pack("!5H", flags, 1, len(found), 0, 0)
        # Each has the name of the question, at byte 12.
        record = struct.pack("!HHHIH", 0xC00C, A, IN, 1, 4)
        return head + question + b"".join(record + socket.inet_aton(one) for one in found)
