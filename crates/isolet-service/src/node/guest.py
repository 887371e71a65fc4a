"""What a node has a session do by itself: files and contexts, for `guest.rs`.

It runs in the guest, where code of the client may have changed anything. So it decides nothing, and
the node takes its answers for data.
"""

import os
import posixpath
import shutil
import stat
import sys
import types

HOLDER = "_isolet_contexts"
FIRST = "default"  # the context that every session has
OWN = ("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__")
KINDS = {stat.S_IFDIR: "dir", stat.S_IFLNK: "link"}


def look(path):
    """Returns what is known of an entry, of a link itself."""
    found = os.lstat(path)
    kind = stat.S_IFMT(found.st_mode)
    return {
        "name": posixpath.basename(path),
        "kind": KINDS.get(kind, "file"),
        "path": path,
        "size": found.st_size,
        "mode": stat.S_IMODE(found.st_mode),
        "permissions": stat.filemode(found.st_mode),
        "modified": float(found.st_mtime),
        "target": os.readlink(path) if kind == stat.S_IFLNK else None,
    }


def entries(path, depth):
    """Returns the entries of a directory and of those in it, so many levels deep."""
    found = []
    for name in sorted(os.listdir(path)):
        entry = look(posixpath.join(path, name))
        found.append(entry)
        if entry["kind"] == "dir" and depth > 1:
            found.extend(entries(entry["path"], depth - 1))
    return found


def make_directory(path):
    """Makes a directory and those above it, and fails if there is one."""
    os.makedirs(path)
    return look(path)


def move(path, to):
    """Moves an entry, and makes the directory that it goes to."""
    os.makedirs(posixpath.dirname(to), exist_ok=True)
    os.replace(path, to)
    return look(to)


def remove(path):
    """Removes an entry with all that is in it."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def holder():
    """Returns what holds the variables of the contexts whose turn it is not."""
    held = sys.modules.get(HOLDER)
    if held is None:
        held = sys.modules[HOLDER] = types.ModuleType(HOLDER)
        held.spaces, held.environ, held.current = {}, {}, FIRST
    return held


def own(variables):
    """Returns those variables that a context begins with."""
    return {name: variables[name] for name in OWN if name in variables}


def enter(main, leave, to, directory):
    """Puts the variables of a context in the place of another one's; of those that are there, if
    `leave` is None.
    """
    held = holder()
    spaces = held.spaces
    leave = held.current if leave is None else leave
    held.current = to
    if leave == to:
        return
    variables, place = spaces.get(to) or (own(main), directory)
    try:
        left = os.getcwd()
    except OSError:
        left = directory
    os.chdir(place)
    spaces.pop(to, None)
    spaces[leave] = (dict(main), left)
    main.clear()
    main.update(variables)


def forget(main, context, is_current, directory):
    """Forgets the variables of a context."""
    if is_current:
        os.chdir(directory)
        kept = own(main)
        main.clear()
        main.update(kept)
    else:
        holder().spaces.pop(context, None)


def set_environ(main, values):
    """Sets variables of the environment in the place of those that were set so before."""
    held = holder()
    for name, before in held.environ.items():
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
    held.environ = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
