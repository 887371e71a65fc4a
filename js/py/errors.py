"""Exceptions as the host gets them, and tracebacks as python prints them."""

import json
import traceback
import types

from _isolet_values import QUALIFIED, UNPRINTABLE, encodable, exact

GLUE = "<isolet>"  # what the file names of our own code begin with
MAX_TEXT = 65_536  # characters of a message, a traceback or the args; the tail says the most
LONG = 2000  # frames at each end of a traceback that are looked at
# Of an exception and all that it comes from; and of an interrupt, or of what one comes from.
MOST_FRAMES, FEW_FRAMES = 4 * LONG, 500
EACH = 10  # frames that take as long to look at as an exception does
OURS = (GLUE, "ext:", "/lib/python314.zip/pyodide/", "/lib/python314.zip/_pyodide/")
# What exceptions are, whatever their classes put in its place.
CAUSE, CONTEXT, IS_SUPPRESSED, ARGS = (
    vars(BaseException)[name].__get__
    for name in ("__cause__", "__context__", "__suppress_context__", "args")
)


def capped(text):
    """The end of an overlong text, after a note of what is missing."""
    missing = len(text) - MAX_TEXT
    return text if missing <= 0 else f"[... {missing} characters dropped ...]" + text[-MAX_TEXT:]


def describe_exception(error, seen=None):
    is_interrupt = issubclass(type(error), KeyboardInterrupt)
    most = MOST_FRAMES if seen is None and not is_interrupt else FEW_FRAMES
    seen = seen or {id(error)}
    description = {
        "type": encodable(QUALIFIED(type(error))),
        "message": message_of(error),
        "args": json_args(error),
        "traceback": format_traceback(error, most),
        "cause": None,
    }
    cause = CAUSE(error)
    if cause is None and not IS_SUPPRESSED(error):
        cause = CONTEXT(error)
    if cause is not None and id(cause) not in seen and len(seen) < 16:
        seen.add(id(cause))
        description["cause"] = describe_exception(cause, seen)
    return description


def message_of(error):
    try:
        return encodable(capped(exact(str(error))))
    except BaseException:
        return UNPRINTABLE


def json_args(error):
    try:
        text = json.dumps(ARGS(error), allow_nan=False, ensure_ascii=False)
        text.encode()  # lone surrogates are no JSON
        return text if len(text) <= MAX_TEXT else None
    except BaseException:
        return None


def format_traceback(error, left=MOST_FRAMES):
    """The traceback as python prints it, without the frames of the sandbox itself."""
    whole, links, is_cut = [], [], False
    try:
        dropped = 0
        for one in chain(error):
            if left <= 0:
                is_cut = True
                break
            links.append((one, CAUSE(one), CONTEXT(one), IS_SUPPRESSED(one)))
            count, missing = shorten(one, whole)
            left -= count + EACH
            dropped += missing
        if is_cut:
            seen = {id(one) for one, *_ in links}
            for one, cause, context, is_suppressed in links:
                cause = cause if id(cause) in seen else None
                link(one, cause, context if id(context) in seen else None, is_suppressed)
        shown = traceback.TracebackException.from_exception(error, compact=True)
        strip(shown)
        text = capped("".join(shown.format()))
        if is_cut:
            text = f"[... more exceptions dropped ...]\n{text}"
        return encodable(f"[... {dropped} frames dropped ...]\n{text}" if dropped else text)
    except BaseException:
        return f"{encodable(QUALIFIED(type(error)))}: {message_of(error)}\n"
    finally:
        for one, frames in whole:
            BaseException.__traceback__.__set__(one, frames)
        if is_cut:
            for links_of_one in links:
                link(*links_of_one)


def link(error, cause, context, is_suppressed):
    BaseException.__cause__.__set__(error, cause)
    BaseException.__context__.__set__(error, context)
    BaseException.__suppress_context__.__set__(error, is_suppressed)


def chain(error):
    """The exception and those that it comes from."""
    found, seen = [error], set()
    while found:
        error = found.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        found += [error.__cause__, error.__context__]
        if isinstance(error, BaseExceptionGroup):
            found += error.exceptions


def shorten(error, whole):
    """Leaves out the middle of a traceback that would take long to look at, and notes the whole of
    it; how many frames there are then, and how many are left out. Of an interrupt, which nobody
    reads about, the end is left out.
    """
    last, count = error.__traceback__, 0
    while last is not None and count < 2 * LONG:
        last, count = last.tb_next, count + 1
    if last is None:
        return count, 0
    tail = error.__traceback__
    for _ in range(LONG):
        tail = tail.tb_next
    head = frames_of(error.__traceback__, tail)
    dropped = 0
    if isinstance(error, KeyboardInterrupt):
        tail = None
    else:
        while last is not None:
            last, tail, dropped = last.tb_next, tail.tb_next, dropped + 1
    whole.append((error, error.__traceback__))
    for frame in reversed(head):
        tail = types.TracebackType(tail, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    error.__traceback__ = tail
    return count, dropped


def frames_of(first, end):
    found = []
    while first is not end:
        found.append(first)
        first = first.tb_next
    return found


def strip(shown):
    found = [shown]  # as long a chain as the guest made
    while found:
        shown = found.pop()
        if shown is None:
            continue
        frames = [frame for frame in shown.stack or () if not is_ours(frame.filename)]
        shown.stack = Stack(frames) if frames else None
        found += [shown.__cause__, shown.__context__, *(shown.exceptions or ())]


class Stack(traceback.StackSummary):
    """Formats equal frames, of which a recursion has many, once."""

    def __init__(self, frames):
        super().__init__(frames)
        self.known = {}

    def format_frame_summary(self, frame, **options):
        at = frame.filename, frame.lineno, frame.end_lineno, frame.colno, frame.end_colno
        key = *at, frame.name
        text = self.known.get(key)
        if text is None:
            text = self.known[key] = super().format_frame_summary(frame, **options)
        return text


def is_ours(filename):
    return filename.startswith(OURS)
