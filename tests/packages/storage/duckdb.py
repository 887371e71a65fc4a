"""Groups by SQL."""

import duckdb

sql = "select city, sum(n) from (values ('a', 1), ('a', 2)) t(city, n) group by city"
assert duckdb.sql(sql).fetchall() == [("a", 3)]
