"""Tables, arrays, points in time and missing values, as they cross."""

import numpy as np
import pandas as pd

times = pd.to_datetime(["2026-11-22 10:00", None])
frame = pd.DataFrame({"n": [1, 2], "x": [0.5, None], "when": times}, index=["a", "b"])
twice = pd.DataFrame([[1, 2]], columns=["n", "n"])
[
    frame,
    pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}),
    twice,
    pd.Series(["x", pd.NA], dtype=object),
    np.array([[1, 2], [3, 4]], dtype=np.int8),
    np.array(["2026-11-22", "NaT"], dtype="datetime64[ns]"),
    np.timedelta64(1500, "ms"),
    pd.Timedelta(minutes=2),
    pd.Timestamp("2026-11-22", tz="Europe/Berlin"),
    np.array([{"a": np.float32(0.5)}], dtype=object),
    pd.Index([1, 2]),
    np.str_("text"),
    pd.Period("2026-11"),
    np.bool_(True),
]
