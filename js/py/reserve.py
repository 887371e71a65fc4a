"""Memory that guest code cannot fill, so that what became of it can be told."""

PIECE = 1 << 19  # bytes; more than one arena of CPython's allocator
PIECES = 4

pieces = []


class Room:
    """Empty, but said to be long: a list of it takes the memory, and gives it back without a write
    to it.
    """

    def __length_hint__(self):
        return PIECE // tuple.__itemsize__

    def __iter__(self):
        return iter(())


ROOM = Room()


def keep():
    """Takes the reserve, or what there is of it."""
    try:
        while len(pieces) < PIECES:
            pieces.append(bytes(PIECE))
    except MemoryError:
        pass


def use():
    """Gives the reserve up if there is little memory besides."""
    try:
        list(ROOM)
    except MemoryError:
        release()


def release():
    pieces.clear()
