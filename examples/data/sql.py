"""SQL over a DataFrame.

Puts two tables into SQLite, asks with joins and window functions, and checks an answer with pandas.
"""

import sqlite3

import matplotlib.pyplot as plt
import pandas as pd

stations = pd.read_csv("stations.csv")
rides = pd.read_csv("rides.csv", parse_dates=["started_at"])
connection = sqlite3.connect(":memory:")
stations.to_sql("stations", connection, index=False)
rides.to_sql("rides", connection, index=False)
connection.execute("CREATE INDEX rides_from ON rides (from_id)")

busiest = pd.read_sql(
    """
    SELECT station, district, COUNT(*) AS rides, ROUND(AVG(minutes), 1) AS mean_minutes,
           ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS percent
    FROM rides JOIN stations ON station_id = from_id
    GROUP BY station_id ORDER BY rides DESC
    """,
    connection,
)
print(busiest.to_string(index=False))

longest = pd.read_sql(
    """
    WITH ranked AS (
        SELECT a.station AS "from", b.station AS "to", started_at, minutes,
               ROW_NUMBER() OVER (PARTITION BY a.district ORDER BY minutes DESC) AS place,
               a.district
        FROM rides JOIN stations a ON a.station_id = from_id JOIN stations b ON b.station_id = to_id
    )
    SELECT district, "from", "to", started_at, minutes FROM ranked WHERE place = 1
    ORDER BY district
    """,
    connection,
    parse_dates=["started_at"],
)
print()
print(longest.to_string(index=False))

hourly = pd.read_sql(
    """
    SELECT CAST(STRFTIME('%H', started_at) AS INTEGER) AS hour,
           STRFTIME('%w', started_at) IN ('0', '6') AS weekend, COUNT(*) AS rides
    FROM rides WHERE minutes > :minutes GROUP BY hour, weekend
    """,
    connection,
    params={"minutes": 5},
)
same = rides[rides["minutes"] > 5]["started_at"].dt.hour.value_counts().sort_index()
assert same.equals(hourly.groupby("hour")["rides"].sum().rename("count").astype("int64"))
print()
print(f"{same.sum()} rides of more than 5 minutes, most of them at {same.idxmax()} h")

table = hourly.pivot(index="hour", columns="weekend", values="rides").reindex(range(24)).fillna(0)
ax = table.rename(columns={0: "Monday to Friday", 1: "weekend"}).plot.bar(figsize=(7.5, 3.5))
ax.set(title="Rides by hour", xlabel="")
ax.legend(title=None)
plt.xticks(rotation=0)
plt.tight_layout()
plt.show()
