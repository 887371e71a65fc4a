# strftime: glibc's directives, flags, widths and modifiers, and what it does not know.
import datetime
import itertools
import time

FLAGS = ["", "-", "_", "0", "^", "#", "_^", "^#", "-0"]
WIDTHS = ["", "3", "12", "012"]
MODIFIERS = ["", "E", "O"]
LETTERS = "aAbBcCdDeFgGhHIjkKlLmMnNpPqQrRStTuUvVwWxXyYzZ%fiJ"
ENDS = ["", "%", "%5", "%-", "%E", "%^", "z", "100%%", "é"]
# How they look depends on the version of python before the year 1000.
OF_YEARS = set("cCFGY")


def times():
    start = datetime.datetime(1, 1, 1, 3, 4, 5, 678)
    for year in [1, 57, 999, 1000, 1582, 1899, 1969, 1970, 2000, 2024, 2025, 2038, 2400, 9998]:
        day = (year * 7919) % 365
        seconds = (year * 104729) % 86400
        date = start.replace(year=year)
        yield date + datetime.timedelta(days=day, seconds=seconds)


ALL = list(times())
FORMATS = []
for count, (flag, width, modifier, letter) in enumerate(
    itertools.product(FLAGS, WIDTHS, MODIFIERS, LETTERS)
):
    before = ["", "x ", "%H:", "%%"][count % 4]
    FORMATS.append(f"{before}%{flag}{width}{modifier}{letter}{ENDS[count % 9]}")

for count, form in enumerate(FORMATS):
    when = ALL[count % len(ALL)]
    zone = [0, 0, 1, -1][count % 4]
    as_tuple = when.timetuple()[:8] + (zone,)
    print(form, as_tuple, repr(time.strftime(form, as_tuple)))
    if when.year >= 1000:
        seconds = (when - datetime.datetime(1970, 1, 1)).total_seconds()
        print(repr(time.strftime(form, time.gmtime(seconds))))
    if when.year >= 1000 or not OF_YEARS & set(form):
        print(repr(when.strftime(form)), repr(when.date().strftime(form)))
        print(repr(when.time().strftime(form)) if not OF_YEARS & set(form) else "")

when = datetime.datetime(2024, 3, 5, 17, 8, 9)
aware = when.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30), "IST"))
print(f"{when:%I:%M %P} {when:%-d/%-m} {when:%k|%l|%e} {when:100%} {aware:%Z %z %s}")
print(aware.strftime("%l:%M %P %Z"), aware.strftime("%^Z"), when.strftime("%H:%M:%S.%f %Q"))
for form in ["", "x", "%", "%%", "%P", "%Y" * 300, "%1000d", "%1024d", "%5000Y", "%9999999999d"]:
    print(form[:10], repr(time.strftime(form, when.timetuple()))[:40])
for call in [
    lambda: time.strftime(),
    lambda: time.strftime(5),
    lambda: time.strftime("%P", None),
    lambda: time.strftime("%P", (1, 2)),
    lambda: time.strftime("%P", (2024, 13, 1, 0, 0, 0, 0, 1, 0)),
    lambda: time.strftime("%P", (2024, 1, 1, 25, 0, 0, 0, 1, 0)),
    lambda: time.strftime("%Y", (2024, 1, 1, 25, 0, 0, 0, 1, 0)),
]:
    try:
        print(call())
    except (TypeError, ValueError) as error:
        print(type(error).__name__, str(error).replace("()", ""))
print(len(time.strftime("%l %P %c")) > 20, time.strftime.__name__, time.strftime.__module__)
print(time.strftime("%P", (2024, 0, 0, 0, 0, 0, 0, 0, 0)), time.strftime("%-j", (2024,) + (0,) * 8))
