"""Stores an array in pieces and reads a part."""

import numpy as np
import zarr

array = zarr.create_array("a.zarr", shape=(100, 10), chunks=(10, 10), dtype="f8")
array[:] = np.arange(1000.0).reshape(100, 10)
assert zarr.open_array("a.zarr")[42, 3] == 423
