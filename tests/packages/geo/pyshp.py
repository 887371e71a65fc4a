"""Writes a file of shapes and reads it."""

import shapefile

with shapefile.Writer("a") as file:
    file.field("name", "C")
    file.point(10, 59)
    file.record("Oslo")
with shapefile.Reader("a") as file:
    assert file.shape(0).points == [(10, 59)] and file.record(0).name == "Oslo"
