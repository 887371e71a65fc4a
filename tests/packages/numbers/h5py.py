"""Writes arrays and attributes to HDF5 and reads them."""

import h5py
import numpy as np

with h5py.File("a.h5", "w") as file:
    file.create_dataset("x", data=np.arange(6).reshape(2, 3)).attrs["unit"] = "m"
with h5py.File("a.h5") as file:
    assert file["x"][1].tolist() == [3, 4, 5] and file["x"].attrs["unit"] == "m"
