"""What `name?` and `%whos` tell of objects."""

import builtins
import fnmatch
import inspect

from _isolet_values import capped_repr, type_name

MAX_TEXT = 10_000  # characters of a value
LONG = 50  # characters of a value in a table
END = 25  # characters of each end of a longer one
SIZED = (dict, list, tuple)
MISSING = object()


def tell(line, shell, has_source=False):
    """Prints what is known of the object that a line names."""
    name = line.strip().strip("?")
    if not name:
        return
    value = find(name, shell)
    if value is MISSING:
        print(f"Object `{name}` not found.")
        return
    fields = [("Signature:", signature(name, value))]
    if not callable(value):
        fields += [("Type:", type(value).__name__), ("String form:", capped_repr(value, MAX_TEXT))]
    source = text_of(inspect.getsource, value) if has_source else None
    documentation = text_of(inspect.getdoc, value)
    if source is not None:
        fields.append(("Source:", f"{source.rstrip()}\n"))
    else:
        fields.append(("Docstring:", documentation or "<no docstring>"))
    if inspect.isclass(value) and has_own_init(value):
        fields.append(("Init docstring:", text_of(inspect.getdoc, value.__init__)))
    fields.append(("File:", text_of(inspect.getsourcefile, value)))
    if callable(value):
        fields.append(("Type:", type(value).__name__))
    for title, text in fields:
        if text:
            print(f"{title}\n{text}" if "\n" in text else f"{title:<10} {text}")


def find(name, shell):
    """The object of a dotted path, of which no part is called; a command's function."""
    if name.startswith("%"):
        kind = "cell" if name.startswith("%%") else "line"
        return shell.magics_manager.magics[kind].get(name.lstrip("%"), MISSING)
    try:
        return eval(name, shell.user_ns)
    except Exception:
        magic = shell.find_line_magic(name)
        return MISSING if magic is None else magic


def signature(name, value):
    if not callable(value):
        return None
    try:
        return f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        return None


def text_of(ask, value):
    try:
        return ask(value)
    except Exception:
        return None


def has_own_init(value):
    return "__init__" in vars(value)


def search(line, shell):
    """Prints the names that fit a pattern."""
    words = line.split()
    pattern = words[0].strip("?") if words else "*"
    path, _, last = pattern.rpartition(".")
    if path:
        owner = find(path, shell)
        names = [f"{path}.{name}" for name in dir(owner)] if owner is not MISSING else []
    else:
        names = [*shell.user_ns, *vars(builtins)]
    is_private = last.startswith("_")
    found = {
        name
        for name in names
        if fnmatch.fnmatchcase(name, pattern)
        and (is_private or not name.rpartition(".")[2].startswith("_"))
    }
    print(*sorted(found), sep="\n")


def print_table(variables):
    """Prints variables with their types and what they are."""
    kinds = [type(value).__name__ for _, value in variables]
    wide = max(len("Variable"), *(len(name) for name, _ in variables)) + 3
    kind_wide = max(len("Type"), *map(len, kinds)) + 3
    print(f"{'Variable':<{wide}}{'Type':<{kind_wide}} Data/Info")
    print("-" * (wide + kind_wide + len("Data/Info") + 1))
    for (name, value), kind in zip(variables, kinds):
        print(f"{name:<{wide}}{kind:<{kind_wide}} {summary(value, kind)}")


def summary(value, kind):
    try:
        if type(value) in SIZED:
            return f"n={len(value)}"
        if kind == "ndarray":
            shape = "x".join(map(str, value.shape))
            size = f"{shape}: {value.size} elems, type `{value.dtype}`, {value.nbytes} bytes"
            if value.nbytes < 100_000:
                return size
            is_kb = value.nbytes < 1 << 20
            scaled = value.nbytes / (1 << 10 if is_kb else 1 << 20)
            return f"{size} ({scaled} {'kb' if is_kb else 'Mb'})"
        if kind in ("DataFrame", "Series"):
            return f"Shape: {value.shape}"
        text = str(value).replace("\n", "\\n")
    except Exception:
        return f"<{type_name(type(value))} object; str() failed>"
    return text if len(text) < LONG else f"{text[:END]}<...>{text[-END:]}"
