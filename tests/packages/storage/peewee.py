"""Saves an object in SQLite and reads it."""

import peewee

database = peewee.SqliteDatabase(":memory:")


class City(peewee.Model):
    name = peewee.CharField()

    class Meta:
        database = database


database.create_tables([City])
City.create(name="Oslo")
assert City.get(City.name.startswith("O")).name == "Oslo"
