"""Writes lines of JSON and reads them, with a check of types."""

import jsonlines

with jsonlines.open("a.jsonl", "w") as file:
    file.write_all([{"a": 1}, 2])
with jsonlines.open("a.jsonl") as file:
    assert list(file.iter(type=dict, skip_invalid=True)) == [{"a": 1}]
