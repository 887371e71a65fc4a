"""The variables of the guest's namespace, as the host sets and sees them."""

import types

from _isolet_interactive_shell import Inputs, Outputs
from _isolet_values import SCALARS, capped_repr, describe_value, encodable, type_name

MAX_REPR = 500  # characters
HIDDEN = {types.ModuleType, Inputs, Outputs}
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)


def set_variables(command, namespace):
    namespace.update(command["inputs"])
    return {}


def get_variable(command, namespace):
    name = command["name"]
    if name not in namespace:
        return {"flag": False}
    reply = {"flag": True}
    describe_value(namespace[name], None, reply)
    return reply


def delete_variable(command, namespace):
    missing = object()
    return {"flag": namespace.pop(command["name"], missing) is not missing}


def list_variables(namespace, is_function):
    return described(
        (name, value)
        for name, value in list(namespace.items())
        if is_public(name, value) and not is_function(name, value)
    )


def changed(before, namespace):
    """The names this run bound or rebound, with type, size and capped repr."""
    missing = object()
    return described(
        (name, value)
        for name, value in list(namespace.items())
        if is_public(name, value) and before.get(name, missing) is not value
    )


def is_public(name, value):
    return type(name) is str and not name.startswith("_") and type(value) not in HIDDEN


def described(variables):
    """Each with its type, size and capped repr, if that can be had. After an interrupt, which ends
    what takes too long, no more code of the guest runs.
    """
    found, is_interrupted = [], False
    for name, value in variables:
        kind = type(value)
        if is_interrupted and kind not in SCALARS:
            continue
        try:
            size = len(value) if kind in SIZED else None
            shown = encodable(capped_repr(value, MAX_REPR))
        except KeyboardInterrupt:
            is_interrupted = True
        except BaseException:  # guest code that runs when a value is looked at
            pass
        else:
            found.append([encodable(name), encodable(type_name(kind)), size, shown])
    return found
