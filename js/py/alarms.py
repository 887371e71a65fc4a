"""`signal.alarm` and `signal.setitimer`: a handler of SIGALRM is called in time.

The host interrupts what computes, and the event loop ends what waits. Programs have one alarm at a
time, which ends with its run. Commands of the shell have theirs beside it.
"""

import contextlib
import errno
import math
import operator
import signal
from time import monotonic

import _isolet_waits as waits

ALARM = signal.SIGALRM
REAL, VIRTUAL, PROFILE = range(3)
LONGEST = (2**31 - 1) / 1000  # seconds, what a JavaScript timer takes
EARLY = 0.02  # seconds that timers may be early by
STATUS = 128 + ALARM  # of a program that an alarm ends

set_plain = signal.signal
get_plain = signal.getsignal

bridge = None
handler = signal.SIG_DFL
is_watched = False  # whether CPython calls `deliver`
due = None  # when the alarm is due, by the monotonic clock
interval = 0.0  # seconds between alarms; 0 if there is one only
looks = []  # what looks at the commands that go on, the inner ones last


class itimer_error(OSError):  # noqa: N801: its name in `signal`
    pass


def install():
    """Puts in the module what CPython has on systems with such timers."""
    itimer_error.__module__ = "signal"
    signal.signal, signal.getsignal = set_handler, get_handler
    signal.alarm, signal.setitimer, signal.getitimer = alarm, setitimer, getitimer
    signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF = REAL, VIRTUAL, PROFILE
    signal.ItimerError = itimer_error
    waits.deliver_alarm = deliver


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def alarm(seconds, /):
    """Arrange for SIGALRM to arrive after the given number of seconds."""
    left, _ = set_timer(operator.index(seconds), 0.0)
    return max(1, round(left)) if left else 0


def setitimer(which, seconds, interval=0.0, /):
    """Sets given itimer (one of ITIMER_REAL, ITIMER_VIRTUAL or ITIMER_PROF).

The timer will fire after value seconds and after that every interval seconds.
The itimer can be cleared by setting seconds to zero.

Returns old values as a tuple: (delay, interval)."""
    check_timer(which)
    seconds, interval = float(seconds), float(interval)
    if not (0 <= seconds < math.inf and 0 <= interval < math.inf):
        raise itimer_error(errno.EINVAL, "Invalid argument")
    return set_timer(seconds, interval)


def getitimer(which, /):
    """Returns current value of given itimer."""
    check_timer(which)
    return left(), interval


def check_timer(which):
    which = operator.index(which)
    if which in (VIRTUAL, PROFILE):
        name = "ITIMER_VIRTUAL" if which == VIRTUAL else "ITIMER_PROF"
        raise itimer_error(
            errno.EINVAL, f"{name} is not here, as no processor time is counted; use ITIMER_REAL"
        )
    if which != REAL:
        raise itimer_error(errno.EINVAL, "Invalid argument")


def left():
    return 0.0 if due is None else max(due - monotonic(), 1e-6)


def set_timer(seconds, repeated):
    """Sets the alarm, or none; what the last one was."""
    global due, interval
    if seconds < 0:
        seconds = 0  # an unsigned number of C, which is too far away to come
    before = left(), interval
    if seconds:
        watch()
    due = monotonic() + seconds if seconds else None
    interval = repeated if seconds else 0.0
    arm()
    return before


def arm():
    """Has the signal arrive when the next of all is due."""
    moment = min((look.due for look in looks), default=math.inf)
    if due is not None:
        moment = min(moment, due)
    seconds = min(max(moment - monotonic(), 0.001), LONGEST)
    bridge.set_alarm(seconds * 1000 if moment != math.inf else 0)


class Look:
    """Calls a function when it is due, which raises an exception or says when it is due again."""

    def __init__(self, function):
        self.function, self.due = function, math.inf

    def again(self):
        self.due = monotonic() + EARLY  # unless it says another time
        self.due = self.function()


@contextlib.contextmanager
def looking(function, due):
    """Calls `function` when it is due while a command goes on, even one that computes."""
    look = Look(function)
    look.due = due
    looks.append(look)
    try:
        if due != math.inf:
            watch()
            arm()
        yield
    finally:
        if look in looks:  # the run may have ended
            looks.remove(look)
            if look.due != math.inf:
                arm()


def end():
    """Drops an alarm with the run that has set it."""
    waits.alarm_error = None
    if looks or due is not None:
        looks.clear()
        set_timer(0, 0.0)


def deliver(number, frame):
    """Does what there is to do when the signal has arrived."""
    global due, interval
    is_for_look = False
    try:
        for look in list(looks):
            if look.due - monotonic() < EARLY:
                is_for_look = True
                look.again()
    finally:
        if is_for_look:
            arm()
    if is_for_look and (due is None or due - monotonic() >= EARLY):
        return
    if due is not None and due - monotonic() < EARLY:
        if interval:
            set_timer(interval, interval)
        else:
            due = None
    if handler == signal.SIG_IGN:
        return
    if handler == signal.SIG_DFL:
        raise SystemExit(STATUS)
    handler(number, frame)


def watch():
    global is_watched
    if not is_watched:
        is_watched = True
        set_plain(ALARM, deliver)


def set_handler(signalnum, handler):
    """Set the action for the given signal.

The action can be SIG_DFL, SIG_IGN, or a callable Python object.
The previous action is returned.  See getsignal() for possible return values.

*** IMPORTANT NOTICE ***
A signal handler function is called with two arguments:
the first is the signal number, the second is the interrupted stack frame."""
    before = set_plain(signalnum, handler)  # refuses what is no handler
    if signalnum != ALARM:
        return before
    if is_watched:
        before = globals()["handler"]
    globals()["handler"] = get_plain(ALARM)
    globals()["is_watched"] = False
    watch()
    return before


def get_handler(signalnum):
    """Return the current action for the given signal.

The return value can be:
  SIG_IGN -- if the signal is being ignored
  SIG_DFL -- if the default action for the signal is in effect
  None    -- if an unknown handler is in effect
  anything else -- the callable Python object used as a handler"""
    return handler if is_watched and signalnum == ALARM else get_plain(signalnum)
