"""A time series with time zones.

Reads local times over the end of summer time, where an hour comes twice, then resamples and
smooths.
"""

import matplotlib.dates as mdates
import matplotlib.pyplot as plt
import pandas as pd

df = pd.read_csv("meter.csv", parse_dates=["local_time"])
twice = df["local_time"].duplicated(keep=False)
print("local times that come twice:", *df.loc[twice, "local_time"].astype(str).unique())

df["time"] = df["local_time"].dt.tz_localize("Europe/Berlin", ambiguous="infer")
load = df.set_index("time")["kwh"]
steps = load.index.to_series().diff().dropna()
print("every step is an hour:", (steps == pd.Timedelta("1h")).all())
print(load["2026-10-25 01:00":"2026-10-25 03:00"].to_string())

print()
print(f"{load.isna().sum()} values are missing and interpolated")
load = load.interpolate(method="time")
daily = load.resample("D").agg(["count", "sum", "max"])
print()
print(daily.loc["2026-10-23":"2026-10-27"].round(2))

in_new_york = load.tz_convert("America/New_York")
peak = load.idxmax()
print()
print(f"peak: {load.max():.2f} kWh at {peak}, {in_new_york.idxmax():%H:%M %Z} in New York")
gap = load.index.tz_localize(None) - in_new_york.index.tz_localize(None)
hours = pd.Series(gap / pd.Timedelta("1h"), load.index).resample("D").first()
print("days by the hours between them:", hours.value_counts().to_dict())

rolling = load.rolling("24h", min_periods=24).mean()
week = slice("2026-10-22", "2026-10-28")
fig, ax = plt.subplots(figsize=(7, 3))
ax.plot(load[week].index, load[week], color="0.75", linewidth=1, label="hourly")
ax.plot(rolling[week].index, rolling[week], color="tab:blue", label="mean of 24 h")
change = pd.Timestamp("2026-10-25 03:00", tz="Europe/Berlin")
ax.axvline(change, color="tab:red", linestyle="--", label="end of summer time")
ax.xaxis.set_major_locator(mdates.DayLocator(tz="Europe/Berlin"))
ax.xaxis.set_major_formatter(mdates.DateFormatter("%a %d", tz="Europe/Berlin"))
ax.set(title="Load in Berlin time, October 2026", ylabel="kWh")
ax.legend(ncols=3, fontsize="small", loc="upper left")
ax.set_ylim(1, 5.8)
fig.tight_layout()
plt.show()
