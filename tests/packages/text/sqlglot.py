"""Turns SQL of one database into that of another, and finds its columns."""

import sqlglot
from sqlglot import exp

sql = "SELECT IFNULL(a, 0) FROM t LIMIT 3"
assert sqlglot.transpile(sql, read="mysql", write="tsql") == ["SELECT TOP 3 COALESCE(a, 0) FROM t"]
assert [column.name for column in sqlglot.parse_one(sql).find_all(exp.Column)] == ["a"]
