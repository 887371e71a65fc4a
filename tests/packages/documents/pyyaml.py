"""Reads and writes YAML with anchors and dates."""

import yaml

data = yaml.safe_load("a: &x [1, 2.5, yes]\nb: *x\nc: 2026-01-02\n")
assert data["b"] == [1, 2.5, True] and data["c"].year == 2026
assert yaml.safe_load(yaml.safe_dump(data)) == data
