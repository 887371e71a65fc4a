"""calendar and time: month grids, leap years, weekday iteration, struct_time, strftime without locale, schedules, cron."""
import calendar
import time
from datetime import date, datetime, timedelta

print(calendar.month(2024, 2))
print(calendar.TextCalendar(calendar.SUNDAY).formatmonth(2023, 10, w=3))
print([y for y in range(1890, 2110, 10) if calendar.isleap(y)], calendar.leapdays(1900, 2001), calendar.monthrange(2024, 2)[1], calendar.weekday(2024, 2, 29))
print(calendar.monthcalendar(2021, 2), [len(calendar.monthcalendar(2024, m)) for m in range(1, 13)])
print(list(calendar.day_name), list(calendar.month_abbr)[1:4], calendar.firstweekday())
cal = calendar.Calendar(firstweekday=6)
print([d for d in cal.itermonthdays(2024, 6)][:10], [str(d) for d in cal.itermonthdates(2024, 6)][-3:], list(cal.iterweekdays()), next(iter(cal.monthdays2calendar(2024, 6)))[:3])
for bad in (lambda: calendar.monthrange(2024, 13), lambda: calendar.weekday(2024, 2, 30)):
    try:
        bad()
    except (ValueError, IndexError) as error:
        print(isinstance(error, (ValueError, IndexError)), end=" ")
print(calendar.HTMLCalendar().formatmonth(2024, 2).count("<td"))

epoch = time.gmtime(0)
print(tuple(epoch), epoch.tm_year, calendar.timegm((2024, 2, 29, 12, 0, 0)), calendar.timegm(time.gmtime(1234567890)), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1e9)))
parsed = time.strptime("30 Nov 00 23:59", "%d %b %y %H:%M")
print(parsed.tm_year, parsed.tm_yday, parsed.tm_wday, time.strftime("%A %d %B, week %W", parsed), time.asctime(time.gmtime(86400 * 365)))
before, cpu = time.monotonic(), time.perf_counter_ns()
time.sleep(0.01)
print(time.monotonic() > before, time.perf_counter_ns() > cpu, time.time() > 1.6e9, isinstance(time.time_ns(), int), time.gmtime().tm_year >= 2024)


def nth_weekday(year, month, weekday, n):
    """The n-th (or, negative, n-th last) weekday of a month."""
    days = [d for d in calendar.Calendar().itermonthdates(year, month) if d.month == month and d.weekday() == weekday]
    return days[n - 1 if n > 0 else n]


print("first Mondays:", [nth_weekday(2024, m, 0, 1).day for m in range(1, 13)], "last Friday:", nth_weekday(2024, 5, 4, -1), nth_weekday(2024, 11, 3, 4))


def cron_field(text, low, high):
    values = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            start, end = low, high
        elif "-" in span:
            start, end = map(int, span.split("-"))
        else:
            start = end = int(span)
        values.update(range(start, end + 1, int(step or 1)))
    return values


def cron(expression, after, count):
    minutes, hours, days, months, weekdays = (
        cron_field(f, *limits) for f, limits in zip(expression.split(), [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)])
    )
    moment = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    found = []
    while len(found) < count:
        if moment.month not in months:
            moment = (moment.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
        elif moment.day not in days or moment.isoweekday() % 7 not in weekdays:
            moment = moment.replace(hour=0, minute=0) + timedelta(days=1)
        elif moment.hour not in hours:
            moment = moment.replace(minute=0) + timedelta(hours=1)
        elif moment.minute not in minutes:
            moment += timedelta(minutes=1)
        else:
            found.append(f"{moment:%Y-%m-%d %H:%M}")
            moment += timedelta(minutes=1)
    return found


start = datetime(2024, 2, 27, 22, 50)
for expression in ("*/20 23 * * *", "0 9 * * 1-5", "30 6 29 2 *", "0 0 1 */3 *", "15,45 12 * * 0,6"):
    print(f"{expression:18}", cron(expression, start, 3))


def human(seconds):
    parts = []
    for name, size in (("w", 604800), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount}{name}")
    return " ".join(parts) or "0s"


def parse_human(text):
    return sum(int(part[:-1]) * {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}[part[-1]] for part in text.split())


print([human(s) for s in (0, 59, 3600, 93784, 1209661)], [parse_human(human(s)) == s for s in (1, 3661, 10**7)])


def merge(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


busy = [("09:00", "10:30"), ("12:00", "13:00"), ("10:15", "11:00"), ("16:30", "17:00"), ("12:30", "12:45")]
taken = merge(busy)
free, cursor = [], "08:00"
for begin, end in taken + [["18:00", "18:00"]]:
    if cursor < begin:
        free.append(f"{cursor}-{begin}")
    cursor = end
print(taken, free)


def julian_day(d):
    a = (14 - d.month) // 12
    y, m = d.year + 4800 - a, d.month + 12 * a - 3
    return d.day + (153 * m + 2) // 5 + 365 * y + y // 4 - y // 100 + y // 400 - 32045


print(julian_day(date(2000, 1, 1)), julian_day(date(2024, 2, 29)) - date(2024, 2, 29).toordinal(), sum(date(y, m, 1).weekday() == 6 for y in range(1901, 2001) for m in range(1, 13)))
quarters = {}
for offset in range(0, 366, 30):
    day = date(2024, 1, 1) + timedelta(days=offset)
    quarters.setdefault(f"Q{(day.month - 1) // 3 + 1}", []).append(day.strftime("%d %b"))
print(quarters)
