"""Saves documents in a file and finds them."""

from tinydb import TinyDB, where

db = TinyDB("a.json")
db.insert_multiple([{"name": "Ann", "age": 30}, {"name": "Bo", "age": 20}])
assert TinyDB("a.json").search(where("age") > 25) == [{"name": "Ann", "age": 30}]
