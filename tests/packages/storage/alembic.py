"""Adds a column to a table of SQLite."""

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

with sa.create_engine("sqlite://").begin() as connection:
    operations = Operations(MigrationContext.configure(connection))
    operations.create_table("a", sa.Column("n", sa.Integer))
    operations.add_column("a", sa.Column("text", sa.String(9)))
    assert [column["name"] for column in sa.inspect(connection).get_columns("a")] == ["n", "text"]
