"""Local time by the zone that `TZ` names: a key of the time zone database, or POSIX's rules."""

import calendar
import json
import os
import time

import _isolet_strftime as strftime

FIRST, LAST = 1900, 2500  # the years that rules are applied to
UTC = {"starts": [], "offsets": [0], "summer": [0], "names": ["UTC", "UTC"], "timezone": 0}

bridge = None


def install():
    """Puts in place what CPython has where its C library can set the zone."""
    time.tzset = tzset
    strftime.install()
    show(UTC)


def attach(host_bridge):
    """Connects a restored interpreter to its host."""
    global bridge
    bridge = host_bridge


def tzset():
    """Initialize, or reinitialize, the local timezone to the value stored in os.environ['TZ']."""
    zone = find(os.environ.get("TZ") or "UTC0")
    bridge.set_zone(json.dumps(zone))
    show(zone)


def show(zone):
    """Says in the module `time` what the zone is."""
    names, offset = tuple(zone["names"]), zone["timezone"]
    time.timezone, time.tzname = offset, names
    time.altzone, time.daylight = zone.get("altzone", offset), int("altzone" in zone)


def find(name):
    """The zone of a name; UTC if there is no such zone, as in C libraries."""
    if name in ("UTC", "UTC0"):
        return UTC  # without the database, which takes long to load
    from zoneinfo import _common, _zoneinfo

    key = name.removeprefix(":").rpartition("/zoneinfo/")[2]
    periods = []  # when each starts, its offset, whether it is summer time, its name
    rule = key
    try:
        with _common.load_tzdata(key) as file:
            indexes, starts, offsets, summer, names, rule = _common.load_data(file)
        kinds = list(zip(offsets, map(int, summer), names))
        periods = [(None, *kinds[0]), *((at, *kinds[i]) for at, i in zip(starts, indexes))]
        rule = (rule or b"").decode()
    except (OSError, ValueError, KeyError, ImportError):
        pass
    try:
        if any(character.isdigit() for character in rule):
            extend(periods, _zoneinfo._parse_tz_str(rule))
    except (ValueError, TypeError):
        pass
    return describe(periods) if periods else UTC


def extend(periods, rule):
    """Adds the periods that follow by a rule, or all of them."""
    if not hasattr(rule, "transitions"):  # it is the same all year
        if not periods:
            periods.append((None, *kind(rule, 0)))
        return
    standard, summer = kind(rule.std, 0), kind(rule.dst, 1)
    last = periods[-1][0] if len(periods) > 1 else None
    if not periods:
        periods.append((None, *standard))
    first = FIRST if last is None else time.gmtime(last).tm_year
    for year in range(first, LAST):
        start, end = rule.transitions(year)
        both = [(start - standard[0], *summer), (end - summer[0], *standard)]
        periods.extend(one for one in sorted(both) if last is None or one[0] > last)


def kind(info, is_summer):
    return int(info.utcoff.total_seconds()), is_summer, info.tzname


def describe(periods):
    """What a C library has to know of a zone, with its names and offsets of this year."""
    year = time.gmtime().tm_year
    middles = [calendar.timegm((year, month, 1, 0, 0, 0)) for month in (1, 7)]
    now = [[p for p in periods if p[0] is None or p[0] <= at][-1] for at in middles]
    standard, summer = sorted(now, key=lambda period: period[1])
    zone = {
        "starts": [period[0] for period in periods[1:]],
        "offsets": [period[1] for period in periods],
        "summer": [period[2] for period in periods],
        "names": [standard[3], summer[3]],
        "timezone": -standard[1],
    }
    if standard[1] != summer[1]:
        zone["altzone"] = -summer[1]
    return zone
