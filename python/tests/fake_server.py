#!/usr/bin/env python3
"""Does what a real server never does: the first argument of the program, `$FAKE`, says what."""

from __future__ import annotations

import marshal
import os
import sys

INPUT, OUTPUT = sys.stdin.buffer, sys.stdout.buffer


def read() -> list[object]:
    size = int.from_bytes(INPUT.read(4), "little")
    return marshal.loads(INPUT.read(size))


def write(message: object) -> None:
    body = marshal.dumps(message, 2)
    OUTPUT.write(len(body).to_bytes(4, "little") + body)
    OUTPUT.flush()


def main() -> None:
    kind = os.environ["FAKE"]
    hello = read()
    if kind == "old":
        write(["ok", hello[1], {"protocol": 0, "version": "0.0.9"}])
    elif kind == "refuses":
        error = {"kind": "protocol", "message": "the client speaks version 1, isolet 7 version 2"}
        write(["error", hello[1], error])
        return
    elif kind == "exits":
        sys.exit(3)
    else:
        write(["ok", hello[1], {"protocol": 1, "version": "0.1.0"}])
    if kind == "text":
        OUTPUT.write(b"Hello, this is a program that prints a line of text\n")
    elif kind == "no-marshal":
        OUTPUT.write(b"\x04\0\0\0????")
    elif kind == "no-list":
        write({"a": 1})
    elif kind == "unknown":
        write(["sing", 1])
    elif kind == "fatal":
        write(["fatal", "a message cannot be read"])
        return
    elif kind == "half":
        OUTPUT.write((100).to_bytes(4, "little") + b"[")
        OUTPUT.flush()
        return
    elif kind == "code":
        write(["output", 1, 1, compile("1", "", "eval")])
    elif kind == "malformed":
        OUTPUT.write(bytes.fromhex(os.environ["FRAME"]))
    elif kind == "deaf":
        # Reads nothing, and stays.
        OUTPUT.flush()
        os.kill(os.getpid(), 19)
    OUTPUT.flush()
    while INPUT.read(1):
        pass


main()
