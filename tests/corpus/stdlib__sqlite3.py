"""sqlite3 in memory: schema, parameters, transactions, row factories, joins, windows, functions, aggregates, blobs, errors."""
import datetime
import json
import sqlite3
import statistics

db = sqlite3.connect(":memory:")
db.execute("PRAGMA foreign_keys = ON")
db.executescript("""
    CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, born INTEGER);
    CREATE TABLE book (
        id INTEGER PRIMARY KEY, author_id INTEGER NOT NULL REFERENCES author(id) ON DELETE CASCADE,
        title TEXT NOT NULL, price REAL CHECK (price >= 0), published TEXT, meta TEXT
    );
    CREATE INDEX book_author ON book(author_id);
    CREATE VIEW shelf AS SELECT a.name, b.title, b.price FROM book b JOIN author a ON a.id = b.author_id;
""")
db.executemany("INSERT INTO author(name, born) VALUES (?, ?)", [("Le Guin", 1929), ("Lem", 1921), ("Čapek", 1890), ("Unread", None)])
books = [
    (1, "The Dispossessed", 9.5, "1974-05-01", {"pages": 341}), (1, "The Lathe of Heaven", 7.25, "1971-01-01", {"pages": 184}),
    (2, "Solaris", 8.0, "1961-01-01", {"pages": 204, "film": [1972, 2002]}), (3, "R.U.R.", 3.0, "1920-11-25", None), (3, "War with the Newts", 6.75, "1936-01-01", {}),
]
with db:
    db.executemany(
        "INSERT INTO book(author_id, title, price, published, meta) VALUES (?, ?, ?, ?, ?)",
        [(a, t, p, d, json.dumps(m) if m is not None else None) for a, t, p, d, m in books],
    )
print(db.total_changes, db.execute("SELECT count(*), sum(price), min(published) FROM book").fetchone())
print(db.execute("SELECT * FROM shelf WHERE price > :low AND title LIKE :pattern ORDER BY price DESC", {"low": 5, "pattern": "%the%"}).fetchall())
cursor = db.execute("SELECT name, born FROM author ORDER BY born IS NULL, born")
print([c[0] for c in cursor.description], cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall(), cursor.fetchone())
for row in db.execute("""
    SELECT a.name, count(b.id), coalesce(round(avg(b.price), 3), 'none'), group_concat(b.title, ' / ')
    FROM author a LEFT JOIN (SELECT * FROM book ORDER BY id) b ON b.author_id = a.id GROUP BY a.id HAVING count(b.id) < 5 ORDER BY a.id"""):
    print(row)

db.row_factory = sqlite3.Row
row = db.execute("SELECT id, title, price FROM book WHERE title = ?", ("Solaris",)).fetchone()
print(row["title"], row["PRICE"], row[0], tuple(row), row.keys(), dict(row), len(row))
db.row_factory = lambda cursor, values: {c[0]: v for c, v in zip(cursor.description, values)}
print(db.execute("SELECT 1 AS one, 'x' AS letter, NULL AS empty, x'00ff' AS raw, 2.5 AS real").fetchone())
db.row_factory = None

print("windows:")
for row in db.execute("""
    SELECT title, row_number() OVER (ORDER BY price DESC), rank() OVER (PARTITION BY author_id ORDER BY price), sum(price) OVER (ORDER BY id)
    FROM book ORDER BY id"""):
    print(" ", row)
print("recursive:", [r[0] for r in db.execute("WITH RECURSIVE f(a, b) AS (SELECT 0, 1 UNION ALL SELECT b, a + b FROM f WHERE b < 100) SELECT a FROM f")])
print("json:", db.execute("SELECT title, json_extract(meta, '$.pages') FROM book WHERE json_extract(meta, '$.film[0]') = 1972").fetchall(), db.execute("SELECT sum(value) FROM json_each('[1, 2, 3]')").fetchone())
print("dates:", db.execute("SELECT date('2024-02-28', '+2 days'), strftime('%Y/%m', published), julianday('2000-01-01') FROM book LIMIT 1").fetchone())
print("types:", db.execute("SELECT typeof(1), typeof(1.0), typeof('a'), typeof(x'00'), typeof(NULL), 7 / 2, 7 % 3, '5' + 2, 'a' || 'b', 1 = 1.0, upper('abc'), substr('hello', 2, 3)").fetchone())

try:
    with db:
        db.execute("UPDATE book SET price = price * 2")
        db.execute("INSERT INTO book(author_id, title) VALUES (99, 'orphan')")
except sqlite3.IntegrityError as error:
    print("rolled back:", error, db.execute("SELECT max(price) FROM book").fetchone(), db.in_transaction)
bad_statements = {
    "syntax": "SELEC 1", "table": "SELECT * FROM nowhere", "unique": "INSERT INTO author(name) VALUES ('Lem')", "check": "UPDATE book SET price = -1",
    "null": "INSERT INTO author(name) VALUES (NULL)", "two": "SELECT 1; SELECT 2", "column": "SELECT nothing FROM book",
}
for name, statement in bad_statements.items():
    try:
        db.execute(statement)
    except (sqlite3.Error, sqlite3.Warning) as error:
        print(f"{name}: {type(error).__name__};", end=" ")
print()
for parameters in ((1,), (1, 2, 3), ("x", object())):
    try:
        db.execute("SELECT ?, ?", parameters)
    except sqlite3.Error as error:
        print(len(parameters), isinstance(error, sqlite3.Error), end="; ")
print("injection:", db.execute("SELECT count(*) FROM author WHERE name = ?", ("' OR 1=1 --",)).fetchone())

db.rollback()
db.execute("BEGIN")
db.execute("SAVEPOINT s")
db.execute("DELETE FROM author WHERE name = 'Čapek'")
inside = db.execute("SELECT count(*) FROM book").fetchone()
db.execute("ROLLBACK TO s")
db.commit()
print("savepoint:", inside, db.execute("SELECT count(*) FROM book").fetchone())
print("upsert:", db.execute("INSERT INTO author(name, born) VALUES ('Lem', 0) ON CONFLICT(name) DO UPDATE SET born = 1921 RETURNING id, born").fetchall())
db.commit()


class Median:
    def __init__(self):
        self.values = []

    def step(self, value):
        self.values.append(value)

    def finalize(self):
        return statistics.median(self.values)


db.create_function("initials", 1, lambda s: "".join(w[0] for w in s.split()), deterministic=True)
db.create_aggregate("median", 1, Median)
db.create_collation("backwards", lambda a, b: (a[::-1] > b[::-1]) - (a[::-1] < b[::-1]))
print(db.execute("SELECT group_concat(i, ',') FROM (SELECT initials(title) i FROM book ORDER BY id)").fetchone(), db.execute("SELECT median(price) FROM book").fetchone(), [r[0] for r in db.execute("SELECT title FROM book ORDER BY title COLLATE backwards")])
db.create_function("fails", 0, lambda: 1 / 0)
try:
    db.execute("SELECT fails()").fetchone()
except sqlite3.OperationalError as error:
    print("function raised:", type(error).__name__)

db.execute("CREATE TABLE files (id INTEGER PRIMARY KEY, data BLOB, day TEXT)")
last = db.execute("INSERT INTO files(data, day) VALUES (?, ?)", (bytes(range(8)), datetime.date(2024, 2, 29).isoformat())).lastrowid
with db.blobopen("files", "data", last) as blob:
    blob.write(b"XY")
    blob[3] = 90
    print(len(blob), blob[:5], blob.tell())
print(db.execute("SELECT data, length(data), hex(data) FROM files").fetchone(), db.execute("UPDATE files SET day = 'x'").rowcount, 2**62 == db.execute("SELECT ?", (2**62,)).fetchone()[0])
db.commit()
copy = sqlite3.connect(":memory:")
db.backup(copy)
dump = list(db.iterdump())
print(copy.execute("SELECT count(*) FROM shelf").fetchone(), len([line for line in dump if line.startswith("INSERT")]), dump[0])
copy.close()
try:
    copy.execute("SELECT 1")
except sqlite3.ProgrammingError as error:
    print("closed:", type(error).__name__)
print(any("book_author" in r[3] for r in db.execute("EXPLAIN QUERY PLAN SELECT * FROM book WHERE author_id = 1")), sqlite3.complete_statement("SELECT 1;"), sqlite3.sqlite_version_info >= (3, 35))
db.close()
