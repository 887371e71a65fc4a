"""Writes records of Avro and reads them."""

import io

import fastavro

schema = {"type": "record", "name": "A", "fields": [{"name": "n", "type": "int"}]}
file = io.BytesIO()
fastavro.writer(file, schema, [{"n": 1}])
file.seek(0)
assert list(fastavro.reader(file)) == [{"n": 1}]
