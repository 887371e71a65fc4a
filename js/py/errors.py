"""Exceptions as the host gets them, and tracebacks as python prints them."""

import json
import traceback

from _isolet_values import encodable

GLUE = "<isolet>"  # what the file names of our own code begin with
MAX_TEXT = 65_536  # characters of a message, a traceback or the args; the tail says the most
OURS = (GLUE, "ext:", "/lib/python314.zip/pyodide/", "/lib/python314.zip/_pyodide/")


def capped(text):
    """The end of an overlong text, after a note of what is missing."""
    missing = len(text) - MAX_TEXT
    return text if missing <= 0 else f"[... {missing} characters dropped ...]" + text[-MAX_TEXT:]


def describe_exception(error, seen=None):
    seen = seen or {id(error)}
    description = {
        "type": encodable(type(error).__qualname__),
        "message": message_of(error),
        "args": json_args(error),
        "traceback": format_traceback(error),
        "cause": None,
    }
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is not None and id(cause) not in seen and len(seen) < 16:
        seen.add(id(cause))
        description["cause"] = describe_exception(cause, seen)
    return description


def message_of(error):
    try:
        return encodable(capped(str(error)))
    except BaseException:
        return "<exception str() failed>"


def json_args(error):
    try:
        text = json.dumps(error.args, allow_nan=False, ensure_ascii=False)
        text.encode()  # lone surrogates are no JSON
        return text if len(text) <= MAX_TEXT else None
    except BaseException:
        return None


def format_traceback(error):
    """The traceback as python prints it, without the frames of the sandbox itself."""
    try:
        shown = traceback.TracebackException.from_exception(error, compact=True)
        strip(shown)
        return encodable(capped("".join(shown.format())))
    except BaseException:
        return f"{type(error).__name__}: {message_of(error)}\n"


def strip(shown):
    found = [shown]  # as long a chain as the guest made
    while found:
        shown = found.pop()
        if shown is None:
            continue
        frames = [frame for frame in shown.stack or () if not is_ours(frame.filename)]
        shown.stack = traceback.StackSummary.from_list(frames) if frames else None
        found += [shown.__cause__, shown.__context__, *(shown.exceptions or ())]


def is_ours(filename):
    return filename.startswith(OURS)
