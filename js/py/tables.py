"""The data of a table of pandas by its columns, for clients that draw tables themselves."""

import datetime
import json
import math
import sys

import _isolet_displays as displays
from _isolet_values import encodable

FORMAT = "application/vnd.isolet.table.v1+json"
MOST_CELLS = 100_000
MOST_BYTES = 1 << 20

is_wanted = False  # by the run that is going on


def install():
    displays.ADDITIONS.append(data_of)


def data_of(value):
    """The formats that a table has besides its own: none, unless the run wants its data."""
    pandas = sys.modules.get("pandas") if is_wanted else None
    frame = getattr(pandas, "DataFrame", None)
    if not isinstance(frame, type) or not issubclass(type(value), frame):
        return {}
    rows, columns = value.shape
    if rows * columns > MOST_CELLS:
        return left_out(f"{rows * columns} cells", f"{MOST_CELLS}")
    by_column = {
        encodable(str(name)): [plain(cell) for cell in column.tolist()]
        for name, column in value.items()
    }
    text = json.dumps(by_column, separators=(",", ":"))
    if len(text) > MOST_BYTES:
        return left_out(f"{len(text)} bytes as JSON", f"{MOST_BYTES}")
    return {FORMAT: text}


def left_out(size, limit):
    print(
        f"isolet: the data of a table is left out: it has {size}, the limit is {limit}; "
        "display fewer rows",
        file=sys.stderr,
    )
    return {}


def plain(cell):
    """A cell as JSON has it: times in ISO format, what is not finite and what is missing null."""
    if cell is None or isinstance(cell, int):
        return cell
    if isinstance(cell, str):
        return encodable(cell)
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    if cell is sys.modules["pandas"].NA or cell is sys.modules["pandas"].NaT:
        return None
    if isinstance(cell, (datetime.date, datetime.time)):
        return cell.isoformat()
    if isinstance(cell, (list, tuple)):
        return [plain(one) for one in cell]
    if isinstance(cell, dict):
        return {encodable(str(key)): plain(one) for key, one in cell.items()}
    return plain(cell.item()) if hasattr(cell, "item") and cell.size == 1 else encodable(str(cell))
