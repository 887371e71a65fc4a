"""Writes and reads Parquet."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

file = io.BytesIO()
pq.write_table(pa.table({"n": [1, 2, 3]}), file)
assert pq.read_table(file)["n"].to_pylist() == [1, 2, 3]
