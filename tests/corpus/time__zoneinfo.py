"""zoneinfo over zone files made in memory (so it is real without tzdata), and the named zones where they exist."""
import io
import struct
import zoneinfo
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo


def zone_file(transitions, types, footer):
    """A version 2 TZif file: transitions are (utc seconds, type index), types are (offset, is dst, name)."""

    def block(width):
        names, index = b"", []
        for _, _, name in types:
            index.append(len(names))
            names += name.encode() + b"\0"
        inside = transitions if width == "q" else []
        header = struct.pack(">4sc15x6l", b"TZif", b"2", 0, 0, 0, len(inside), len(types), len(names))
        body = b"".join(struct.pack(f">{width}", at) for at, _ in inside) + bytes(t for _, t in inside)
        body += b"".join(struct.pack(">lbb", offset, dst, i) for (offset, dst, _), i in zip(types, index))
        return header + body + names

    return io.BytesIO(block("l") + block("q") + b"\n" + footer.encode() + b"\n")


def stamp(*when):
    return int(datetime(*when, tzinfo=timezone.utc).timestamp())


central = ZoneInfo.from_file(
    zone_file(
        [(stamp(1980, 4, 6, 1), 1), (stamp(1980, 9, 28, 1), 0)],
        [(3600, 0, "CET"), (7200, 1, "CEST")],
        "CET-1CEST,M3.5.0,M10.5.0/3",
    ),
    key="Test/Central",
)
eastern = ZoneInfo.from_file(zone_file([(stamp(1970, 1, 1), 0)], [(-18000, 0, "EST"), (-14400, 1, "EDT")], "EST5EDT,M3.2.0,M11.1.0"))
south = ZoneInfo.from_file(zone_file([(stamp(1970, 1, 1), 0)], [(36000, 0, "AEST"), (39600, 1, "AEDT")], "AEST-10AEDT,M10.1.0,M4.1.0/3"))
kathmandu = ZoneInfo.from_file(zone_file([(stamp(1986, 1, 1), 1)], [(19800, 0, "+0530"), (20700, 0, "+0545")], "<+0545>-5:45"))
zones = {"central": central, "eastern": eastern, "south": south, "kathmandu": kathmandu}

print(central.key, str(central), eastern.key, repr(ZoneInfo.from_file(zone_file([], [(0, 0, "UTC")], "UTC0"), key="K")))
instant = datetime(2024, 7, 1, 12, tzinfo=timezone.utc)
for name, zone in zones.items():
    local = instant.astimezone(zone)
    print(f"{name:10} {local} {local.tzname()} dst={local.dst()} back={local.astimezone(timezone.utc) == instant}")
winter = instant.replace(month=1)
print({name: winter.astimezone(zone).strftime("%H:%M %Z %z") for name, zone in zones.items()})

print("before the gap:", datetime(2024, 3, 31, 1, 59, 59, tzinfo=central).utcoffset(), "after:", datetime(2024, 3, 31, 3, tzinfo=central).utcoffset())
missing = datetime(2024, 3, 31, 2, 30, tzinfo=central)
print("inside the gap:", missing, missing.replace(fold=1), missing.astimezone(timezone.utc).astimezone(central))
first, second = datetime(2024, 10, 27, 2, 30, tzinfo=central), datetime(2024, 10, 27, 2, 30, tzinfo=central, fold=1)
print("ambiguous:", first, second, second.timestamp() - first.timestamp(), first == second, second - first)
print("from utc:", [(datetime(2024, 10, 27, h, 30, tzinfo=timezone.utc).astimezone(central).fold) for h in (0, 1, 2)])

start = datetime(2024, 3, 30, 12, tzinfo=central)
print("wall arithmetic:", start + timedelta(days=1), "| absolute:", (start.astimezone(timezone.utc) + timedelta(days=1)).astimezone(central))
print("history:", datetime(1980, 7, 1, tzinfo=central).tzname(), datetime(1979, 7, 1, tzinfo=central).tzname(), datetime(1980, 12, 1, tzinfo=central).utcoffset(), datetime(1985, 6, 1, tzinfo=kathmandu).tzname())
print("far future:", datetime(2999, 7, 1, tzinfo=central).tzname(), datetime(2999, 1, 1, tzinfo=south).tzname(), datetime(2037, 6, 1, tzinfo=eastern).utcoffset())


def transitions(zone, year):
    """Finds the changes of a year by bisection."""
    found, low = [], datetime(year, 1, 1, tzinfo=timezone.utc)
    for _ in range(12):
        high = low + timedelta(days=31)
        if low.astimezone(zone).utcoffset() != high.astimezone(zone).utcoffset():
            a, b = low, high
            while b - a > timedelta(seconds=1):
                middle = a + (b - a) / 2
                a, b = (middle, b) if middle.astimezone(zone).utcoffset() == a.astimezone(zone).utcoffset() else (a, middle)
            found.append(b.replace(microsecond=0).astimezone(zone).isoformat())
        low = high
    return found


for name, zone in zones.items():
    print(name, transitions(zone, 2025))
meeting = datetime(2024, 3, 15, 15, tzinfo=central)
print({name: f"{meeting.astimezone(zone):%a %H:%M}" for name, zone in zones.items()}, meeting.astimezone(eastern) == meeting, len({meeting, meeting.astimezone(south)}))

for bad in ("No/Such_Zone", "../etc/passwd", "/abs"):
    try:
        ZoneInfo(bad)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        print(bad, "refused", isinstance(error, (KeyError, ValueError)))
try:
    ZoneInfo.from_file(io.BytesIO(b"not a zone file"))
except ValueError as error:
    print("ValueError:", "magic" in str(error).lower() or type(error).__name__)

if "Europe/Paris" in zoneinfo.available_timezones():
    paris = ZoneInfo("Europe/Paris")
    assert paris is ZoneInfo("Europe/Paris") and paris.key == "Europe/Paris"
    assert all(
        datetime(2024, month, day, hour, tzinfo=paris).utcoffset() == datetime(2024, month, day, hour, tzinfo=central).utcoffset()
        for month in range(1, 13) for day in range(1, 29) for hour in (0, 1, 3, 12)
    )
    assert transitions(paris, 2025) == transitions(central, 2025)
    assert datetime(2024, 7, 1, tzinfo=ZoneInfo("America/New_York")).utcoffset() == timedelta(hours=-4)
print("named zones agree where the data is present")
