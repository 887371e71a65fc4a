"""Computes means along a named dimension."""

import numpy as np
import xarray as xr

cities = {"city": ["a", "b"]}
rain = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("city", "month"), coords=cities)
assert rain.mean("month").sel(city="b").item() == 4
