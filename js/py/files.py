"""The guest's files as the host puts and gets them, by the paths that guest code uses."""

import os
from io import open  # the guest may put others in their places
from os import lstat, makedirs, path, remove, rmdir, scandir
from stat import S_ISDIR


def put(command):
    name = command["path"]
    makedirs(path.dirname(name) or "/", exist_ok=True)
    with open(name, "wb") as file:
        file.write(command["data"])
    return {}


def get(command):
    try:
        with open(command["path"], "rb") as file:
            size = os.fstat(file.fileno()).st_size
            limit = command["max_bytes"]
            if size > limit:
                reason = (
                    f"a file of {size} bytes cannot cross to the host, the limit is {limit} bytes"
                )
                return {"flag": True, "value_error": reason}
            return {"flag": True, "value": file.read()}
    except FileNotFoundError:
        return {"flag": False}


def list_directory(command):
    """Names, whether each is a directory, and sizes in bytes."""
    with scandir(command["path"]) as entries:
        names = sorted(entry.name for entry in entries)
    described = []
    for name in names:
        status = lstat(path.join(command["path"], name))
        described.append([name, S_ISDIR(status.st_mode), status.st_size])
    return {"value": described}


def delete(command):
    """Removes a file or an empty directory; whether there was one."""
    try:
        remove(command["path"])
    except FileNotFoundError:
        return {"flag": False}
    except IsADirectoryError:
        rmdir(command["path"])
    return {"flag": True}
