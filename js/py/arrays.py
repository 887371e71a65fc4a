"""Arrays of numpy, tables and series of pandas, and their scalars as plain data."""

import datetime
import sys

SECOND = 1_000_000_000  # nanoseconds
PACKAGES = ("numpy", "pandas")
UNKNOWN = object()  # instead of a value that has no plain form here


def is_known(kind):
    """Whether a class is one of numpy or pandas."""
    module = getattr(kind, "__module__", None)
    return type(module) is str and module.partition(".")[0] in PACKAGES


def simpler(value, kind):
    """`value` as something nearer to plain: lists, a dict of columns, a text, None; or UNKNOWN."""
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if isinstance(value, pandas.DataFrame):
            return columns_of(value, pandas)
        if value is pandas.NA or value is pandas.NaT:
            return None
        if isinstance(value, (pandas.Period, pandas.Interval)):
            return str(value)
    if isinstance(value, datetime.timedelta):  # a Timedelta too
        return value.total_seconds()
    if isinstance(value, datetime.date):  # a Timestamp too
        return value.isoformat()
    dtype = getattr(value, "dtype", None)
    letter = getattr(dtype, "kind", "")
    if letter in ("M", "m") and kind.__module__ == "numpy":
        return moments(value, letter)
    if hasattr(kind, "tolist"):
        return value.tolist()
    return UNKNOWN


def columns_of(frame, pandas):
    """A table as a dict of lists, by column; the index comes first, if it is more than a count."""
    index = frame.index
    if not isinstance(index, pandas.RangeIndex) or index.name is not None:
        names = [name if name is not None else f"level_{at}" for at, name in enumerate(index.names)]
        if len(names) == 1 and index.names[0] is None:
            names = ["index"]
        levels = [index.get_level_values(at) for at in range(index.nlevels)]
        columns = [*zip(names, levels)]
    else:
        columns = []
    columns += [(name, frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    found = {}
    for name, column in columns:
        name = label(name)
        again = 1
        while name in found:  # a table may have several columns of one name
            again += 1
            name = f"{label(columns[len(found)][0])}.{again}"
        found[name] = column.tolist()
    return found


def label(name):
    """A column's name as a key of a dict: a tuple is that of a column with several levels."""
    if isinstance(name, tuple):
        return ", ".join(map(str, name))
    return name if isinstance(name, (str, int, float, bool)) else str(name)


def moments(value, letter):
    """Points in time as ISO texts, and spans as seconds; None for those that are none."""
    if getattr(value, "ndim", 0):
        return [moments(item, letter) for item in value]
    if str(value) == "NaT":
        return None
    if letter == "m":
        return value.astype("timedelta64[ns]").astype("int64").item() / SECOND
    return str(value)
