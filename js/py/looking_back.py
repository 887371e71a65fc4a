"""Keeps where a run has stopped that is looked back at, so that its variables can be seen."""

import sys

import _isolet_failures as failures
from _isolet_errors import GLUE, OURS
from _isolet_values import encodable

is_looked_back = None  # asks the host; None in a session that is not recorded
stopped = None  # the frame at which the run has stopped


def begin_order(bridge, order):
    """Makes the session deterministic, or a recorded one. Returns whether its entropy is another
    one from here on.
    """
    global is_looked_back
    if order[-1]:
        is_looked_back = bridge.is_looked_back
        failures.begin_recorded()

        def stop_at_line():
            bridge.end_look_back()
            raise KeyboardInterrupt

        bridge.watch_line(sys.monitoring, GLUE, stop_at_line)
    align(bridge)
    return bridge.order(*order)


def resume_order(bridge, order):
    """Goes on with the order of a session that was saved, and with another one if there is one."""
    if order:
        align(bridge)
    bridge.resume_order()
    return order and begin_order(bridge, order)


def align(bridge):
    """Goes on to where the interpreter looks for a signal, which it does every some steps: from
    there on they are counted, whatever was done before.
    """
    while not bridge.aligned():
        pass


def keep(error):
    """Keeps where an interrupt has stopped the run. Returns whether that is looked back at."""
    global stopped
    if is_looked_back is None or not isinstance(error, KeyboardInterrupt) or not is_looked_back():
        return False
    sys.last_exc = sys.last_value = error
    sys.last_type, sys.last_traceback = type(error), error.__traceback__
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(OURS):
            stopped = trace
        trace = trace.tb_next
    return True


def bind_locals(namespace):
    """Gives the namespace the variables of the function in which the run has stopped."""
    if stopped is None:
        return {"flag": False}
    frame = stopped.tb_frame
    names = []
    if frame.f_locals is not namespace:
        for name, value in frame.f_locals.items():
            if not name.startswith("."):
                namespace[name] = value
                names.append(encodable(name))
    return {
        "flag": True,
        "value": [encodable(frame.f_code.co_qualname), stopped.tb_lineno, sorted(names)],
    }
