"""What a name that is typed at a prompt may become.

No code of the guest's runs for it: attributes are looked up where they are kept, and nothing that
an object would compute.
"""

import builtins
import keyword
import types

MAX_NAMES = 1000
MISSING = object()
METHODS = (staticmethod, classmethod)
SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)

type_dict = type.__dict__["__dict__"].__get__
type_mro = type.__dict__["__mro__"].__get__
module_dict = types.ModuleType.__dict__["__dict__"].__get__


def complete(command, namespace):
    """Names that begin as the last one of a dotted path does; private ones only if asked for."""
    *path, start = command["text"].split(".")
    if path:
        names = [name for attributes in attributes_of(find(path, namespace)) for name in attributes]
    else:
        names = [*namespace, *vars(builtins), *keyword.kwlist]

    def fits(name):
        return type(name) is str and name.startswith(start) and (start or name[:1] != "_")

    return {"value": sorted(set(filter(fits, names)))[:MAX_NAMES]}


def find(path, namespace):
    """What a dotted path leads to, or a thing without attributes."""
    value = look_up(path[0], [namespace, vars(builtins)])
    for name in path[1:]:
        owner, value = value, look_up(name, attributes_of(value))
        kind = type(value)
        if kind in METHODS:
            value = value.__func__
        elif kind in SLOTS:
            try:
                value = value.__get__(owner)
            except (AttributeError, TypeError):
                value = MISSING
        elif kind is property:
            value = MISSING
    return value


def look_up(name, dicts):
    for names in dicts:
        if name in names:
            return names[name]
    return MISSING


def attributes_of(value):
    """The dicts with the attributes of a value, in the order in which they are looked up."""
    if value is MISSING:
        return []
    kind = type(value)
    classes = [type_dict(base) for base in type_mro(kind)]
    if issubclass(kind, type):
        return [type_dict(base) for base in type_mro(value)] + classes
    if issubclass(kind, types.ModuleType):
        return [module_dict(value), *classes]
    for names in classes:
        own = names.get("__dict__")
        if type(own) is types.GetSetDescriptorType:
            return [own.__get__(value), *classes]
    return classes
