"""datetime: construction, arithmetic, parsing and formatting, fixed offsets, ISO calendars, comparisons, limits, folds."""
import datetime as dt
from datetime import date, datetime, time, timedelta, timezone

moment = datetime(2024, 2, 29, 13, 5, 9, 120)
print(moment, repr(moment), moment.date(), moment.time(), moment.timetuple()[:8], moment.toordinal(), moment.weekday(), moment.isoweekday())
print(moment + timedelta(days=366), moment - timedelta(hours=14), moment.replace(year=2028, microsecond=0), (moment - datetime(2000, 1, 1)).days)
print(moment.isoformat(), moment.isoformat(" ", "minutes"), moment.isoformat(timespec="milliseconds"), moment.isocalendar()[:], moment.ctime())
for text in ("2024-02-29", "2024-02-29T13:05", "2024-02-29 13:05:09.5", "2024-02-29T13:05:09+02:00", "20240229T130509Z", "2024-W09-4", "2024-02-30", "nonsense"):
    try:
        print(text, "->", repr(datetime.fromisoformat(text)))
    except ValueError as error:
        print(text, "->", type(error).__name__)
for text, form in (("29/02/24 1:05 PM", "%d/%m/%y %I:%M %p"), ("Thu Feb 29 2024", "%a %b %d %Y"), ("2024-060", "%Y-%j"), ("13:05:09.25 +0530", "%H:%M:%S.%f %z"), ("2024 10 1", "%G %V %u"), ("31 June 2023", "%d %B %Y"), ("x", "%Y")):
    try:
        print(repr(text), "->", datetime.strptime(text, form))
    except ValueError as error:
        print(repr(text), "->", type(error).__name__)
print(moment.strftime("%Y/%m/%d %H-%M-%S %a %A %b %B %j %U %W %y %p %f %% %I %w %G-W%V-%u"), date(5, 1, 2).isoformat(), time(23, 5).strftime("%H.%M"))

delta = timedelta(days=-1, hours=5, minutes=30, microseconds=7)
print(delta, repr(delta), delta.days, delta.seconds, delta.total_seconds(), abs(delta), -delta, delta * 2, delta / 2, delta // timedelta(hours=1), delta % timedelta(hours=7))
print(timedelta(weeks=2, hours=36), timedelta(seconds=3661.5), timedelta(days=1) / timedelta(hours=5), divmod(timedelta(days=1), timedelta(hours=7)), bool(timedelta()), timedelta.max, timedelta.resolution, sum([timedelta(minutes=50)] * 3, timedelta()))

utc, india, west = timezone.utc, timezone(timedelta(hours=5, minutes=30), "IST"), timezone(timedelta(hours=-8))
launch = datetime(2024, 12, 31, 23, 59, 59, tzinfo=utc)
print(launch, launch.astimezone(india), launch.astimezone(west), launch.astimezone(india).tzname(), launch.utcoffset(), repr(west), str(west), india.utcoffset(None))
print(launch == launch.astimezone(india), hash(launch) == hash(launch.astimezone(west)), launch.timestamp(), datetime.fromtimestamp(0, utc), datetime.fromtimestamp(1e9 + 0.5, west), datetime.fromtimestamp(-1, utc))
print(launch - launch.astimezone(india).replace(tzinfo=utc), launch.astimezone(india).strftime("%d %H:%M %z %Z"), f"{launch:%Y%m%dT%H%M%SZ}", launch.utctimetuple().tm_yday, launch.astimezone(west).utctimetuple()[:6])
for action in (lambda: launch < moment, lambda: launch - moment, lambda: date(2023, 2, 29), lambda: moment < date(2024, 1, 1), lambda: timezone(timedelta(hours=25)), lambda: date.max + timedelta(1), lambda: timedelta(days=10**10), lambda: datetime(2024, 1, 1, 24), lambda: time(12) + timedelta(1), lambda: datetime(2024, 1, 1, hour="x")):
    try:
        print(action(), end="; ")
    except (TypeError, ValueError, OverflowError) as error:
        print(type(error).__name__, end="; ")
print()
print(launch == moment, moment == "x", max(date(2024, 1, 1), date(2023, 12, 31)), isinstance(moment, date), date.min, datetime.max, time.max, time(1, 2) < time(1, 3), time(5, tzinfo=india), time.fromisoformat("04:23:01.000384"))
print(date.fromisocalendar(2020, 53, 7), date(2021, 1, 3).isocalendar().week, date.fromordinal(738945), datetime.combine(date(2024, 5, 6), time(7, 8)), date(2024, 1, 31).replace(month=3), date.fromisoformat("20240102"))
folded = datetime(2024, 10, 27, 2, 30, fold=1)
print(folded.fold, folded == folded.replace(fold=0), repr(folded), folded.time().fold)


class Berlin(dt.tzinfo):
    """A rule-based zone of one's own: last Sunday of March to last Sunday of October."""

    @staticmethod
    def last_sunday(year, month):
        last = datetime(year, month, 31)
        return last - timedelta(days=(last.weekday() + 1) % 7)

    def dst(self, when):
        start = self.last_sunday(when.year, 3) + timedelta(hours=2)
        end = self.last_sunday(when.year, 10) + timedelta(hours=3)
        return timedelta(hours=int(start <= when.replace(tzinfo=None) < end))

    def utcoffset(self, when):
        return timedelta(hours=1) + self.dst(when)

    def tzname(self, when):
        return "CEST" if self.dst(when) else "CET"


zone = Berlin()
for when in (datetime(2024, 1, 1, 12, tzinfo=zone), datetime(2024, 3, 31, 3, tzinfo=zone), datetime(2024, 10, 27, 12, tzinfo=zone)):
    print(when, when.tzname(), when.dst(), when.astimezone(utc))


def age(born, today):
    return today.year - born.year - ((today.month, today.day) < (born.month, born.day))


def add_months(day, months):
    index = day.month - 1 + months
    year, month = day.year + index // 12, index % 12 + 1
    last = (date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)).day
    return day.replace(year=year, month=month, day=min(day.day, last))


def business_days(start, end, holidays=()):
    days = (start + timedelta(n) for n in range((end - start).days))
    return sum(d.weekday() < 5 and d not in holidays for d in days)


def easter(year):
    a, b, c = year % 19, year // 100, year % 100
    d = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    e = (32 + 2 * (b % 4) + 2 * (c // 4) - d - c % 4) % 7
    f = d + e - 7 * ((a + 11 * d + 22 * e) // 451) + 114
    return date(year, f // 31, f % 31 + 1)


print(age(date(2000, 2, 29), date(2024, 2, 28)), add_months(date(2024, 1, 31), 1), add_months(date(2024, 11, 30), 3), add_months(date(2024, 3, 31), -1))
print(business_days(date(2024, 12, 20), date(2025, 1, 6), {date(2024, 12, 25), date(2025, 1, 1)}), [str(easter(y)) for y in (2024, 2025, 2038)])
print([str(d) for d in (date(y, m, 13) for y in (2023, 2024) for m in range(1, 13)) if d.weekday() == 4])
