"""Writes a query as the SQL of two databases."""
# With: packaging

import ibis

sales = ibis.table({"shop": "string", "n": "int64"}, name="sales")
sums = sales.group_by("shop").agg(n=sales.n.sum())
assert 'SUM("t0"."n")' in ibis.to_sql(sums, dialect="postgres")
assert "SUM(`t0`.`n`)" in ibis.to_sql(sums, dialect="mysql")
