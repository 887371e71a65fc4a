"""Composes SQL for PostgreSQL."""

from psycopg import sql

query = sql.SQL("SELECT {} FROM {}").format(sql.Identifier("a"), sql.Identifier("b"))
assert query.as_string() == 'SELECT "a" FROM "b"'
