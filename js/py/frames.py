"""The frames between the host and the glue: commands, and the replies to them."""

import sys
from marshal import dumps, loads  # the guest may put others in their places

MARSHAL_VERSION = 2  # the last one without back references: a plain tree
BYTES_HEADER = bytes.__basicsize__ - 1  # where the contents of a bytes object start
TEXT_HEADER = sys.getsizeof("") - 1  # where the contents of an ASCII text start
LONG_TEXT = 1 << 14  # characters of a text that is sent as Python keeps it
TEXT_TAG = b"u"  # marshal's, before the length

bridge = None


def attach(host_bridge):
    global bridge
    bridge = host_bridge


def receive(length):
    """Takes a command from the host."""
    # Freshly made and unshared, so that the host may still write into it.
    buffer = bytes(length)
    bridge.take(id(buffer) + BYTES_HEADER, length)
    command = loads(buffer)
    for name, size in command.get("texts", {}).items():
        # As new, and ASCII as the text that comes into its place.
        text = "\0" * size
        bridge.take(id(text) + TEXT_HEADER, size)
        command["inputs"][name] = text
    return command


def give(data, text):
    """Gives the host the reply that `dump` has made."""
    bridge.give(id(data) + BYTES_HEADER, len(data), id(text) + TEXT_HEADER, len(text))


def dump(reply, max_value):
    """The reply as bytes, and the text that follows them: a long value, as Python keeps it."""
    value, text = reply.get("value"), ""
    if type(value) is str and len(value) >= LONG_TEXT and value.isascii():
        text = reply.pop("value")
    data = dumps(reply, MARSHAL_VERSION)
    if text:
        data += TEXT_TAG + len(text).to_bytes(4, "little")
    if max_value is not None and value is not None and len(data) + len(text) > max_value:
        reply.pop("value", None)
        size = len(TEXT_TAG) + 4 + len(text) if text else len(dumps(value, MARSHAL_VERSION))
        if size > max_value:
            reply["value_error"] = (
                f"a value of {size} bytes cannot cross to the host, the limit is {max_value} bytes"
            )
            return dumps(reply, MARSHAL_VERSION), ""
    return data, text
