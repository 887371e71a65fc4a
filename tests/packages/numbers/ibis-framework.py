"""Groups a table of SQLite and shows the SQL for another database."""
# With: ibis-framework[sqlite]

import ibis

db = ibis.sqlite.connect()
db.create_table("sales", ibis.memtable({"shop": ["a", "b", "a"], "n": [1, 2, 4]}))
sums = db.table("sales").group_by("shop").agg(n=ibis._.n.sum()).order_by("shop")
assert "GROUP BY" in ibis.to_sql(sums, dialect="postgres")
assert sums.to_pandas().n.tolist() == [5, 2]
