"""Saves dictionaries in SQLite and searches their text."""

import sqlite_utils

db = sqlite_utils.Database(memory=True)
db["notes"].insert_all([{"id": 1, "text": "calm sea"}, {"id": 2, "text": "dog"}], pk="id")
db["notes"].enable_fts(["text"])
assert [row["id"] for row in db["notes"].search("sea")] == [1]
