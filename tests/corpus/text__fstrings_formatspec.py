"""f-strings and the format mini-language: alignment, signs, grouping, precision, nesting, custom __format__, % and str.format."""
import datetime
import string
from decimal import Decimal

name, number, pi = "isolet", 1234567.891, 3.14159265358979
print(f"[{name:>10}] [{name:<10}] [{name:^10}] [{name:*^11}] [{name:.3}] [{name:>8.2}]")
print(f"{number:,.2f} {number:_.1f} {number:+.0f} {number:.3e} {number:G} {number:15,.1f}| {number:<15.1f}| {number:015.2f}")
print(f"{42:b} {42:#b} {42:o} {42:#o} {42:x} {42:#X} {42:08b} {42:+d} {42: d} {-42:=6d} {255:#06x} {97:c} {10**12:,}")
print(f"{0b1010_0101:_b} {3735928559:_x} {5:%} {0.1234:.1%} {True:d} {True!s:>6} {True:>6}")
print(f"{pi!r} {pi!s:.4} {name!r:>12} {'é'!a} {pi:.{3}f} {name:{'^'}{12}} {pi:{len(name)}.{1 + 1}f}")
print(f"{number=:.1f} {name = } {1 + 2 = } {name=!s} {pi=:6.2f}")
print(f"{{literal}} {{{name}}} {'nested ' + f'{name[0]}'} {name if number > 1 else 'no'} {(lambda x: x * 2)(4)}")
print(f"{'a' 'b'} {[n * n for n in range(4)]} { {'k': 1}['k'] } {name!s:_>{len(name) + 3}}")
print(f"""triple {name}
    second line {number:.0f}""" f" joined {pi:.1f} " rf"raw \n {name}")

for value in (0.0, -0.0, 1e-7, 123456789.0, 1e22, 1.5, 2.5, 1e100, float("inf"), float("nan")):
    print(f"{value!r:>12} {value:g} {value:.0f} {value:.3g} {value:e} {value:.2%} {value:10.4g}| {value:+}" if value < 1e50 else f"{value} {value:f}"[:40])
print(f"{12345.678:z.1f} {-0.0001:z.1f} {-0.0001:.1f}")
for spec in ("d", "5", "<5", "^5", ">+5", "05", ",", "x", "e", ".1f"):
    print(f"{spec:>4}: {format(7, spec)!r} {format(-7, spec)!r}")
print(f"{Decimal('1234.5'):,.3f} {Decimal('0.00001'):g} {Decimal('1E+5'):f} {1 + 2j:.1f} {3.0j} {-1j:+.0e}")

moment = datetime.datetime(2024, 2, 29, 13, 5, 9, 123456)
print(f"{moment:%Y-%m-%d %H:%M:%S.%f} {moment:%d/%m/%y %I:%M %p} {moment:%A %B %j} [{moment.date()!s:>12}] {moment:%%}")


class Money:
    def __init__(self, cents):
        self.cents = cents

    def __format__(self, spec):
        if spec == "words":
            return f"{self.cents // 100} euro {self.cents % 100}"
        if spec.endswith("€"):
            return format(self.cents / 100, spec[:-1]) + "€"
        return format(str(self), spec)

    def __str__(self):
        return f"{self.cents / 100:.2f}"

    def __repr__(self):
        return f"Money({self.cents})"


price = Money(123456)
print(f"{price} | {price:words} | {price:,.1f€} | {price:>10} | {price!r:>15} | {price!s}")
print("{} {}".format("a", "b"), "{1} {0} {1}".format("a", "b"), "{x[k]} {y.real} {z[1]}".format(x={"k": "v"}, y=3, z="ab"))
print("{:{}}|{:{width}.{p}f}".format("x", ">4", pi, width=8, p=3), "{!r:>6}".format("s"), "{:,}".format(10**9))
print("%s %r %5d|%-5d|%05d %+d %x %o %e %.2f %% %c %5.1f" % ("s", "r", 42, 42, 42, 42, 255, 8, 12345.678, pi, "c", pi))
print("%(name)s has %(count)03d and %(name).2s" % {"name": "ann", "count": 7}, "%s" % (("tuple",),), "%*d" % (6, 42))
print("{a}-{b}".format_map(type("Default", (dict,), {"__missing__": lambda self, key: f"<{key}>"})(a=1)))

for broken in (lambda: f"{name:d}", lambda: f"{3.5:d}", lambda: "{}".format(), lambda: "{x}".format(), lambda: "%d" % "x",
               lambda: f"{3:.2d}", lambda: "%s %s" % (1,), lambda: "{0[a]}".format([1]), lambda: f"{[]:>3}"):
    try:
        broken()
        print("no error")
    except (ValueError, TypeError, IndexError, KeyError) as error:
        print(type(error).__name__, end=" ")
print()

template = string.Template("$who owes ${amount} to $$bank and $missing")
print(template.safe_substitute(who="ann", amount=5), sorted(template.get_identifiers()))
try:
    template.substitute(who="x")
except KeyError as error:
    print("KeyError", error)
print(list(string.Formatter().parse("a{b!r:>{w}}c{{d}}")))
rows = [("apple", 3, 0.5), ("kiwi", 12, 0.25), ("watermelon", 1, 3.999)]
width = max(len(row[0]) for row in rows)
for item, count, cost in rows:
    print(f"| {item:<{width}} | {count:>3} | {cost:>6.2f} | {count * cost:>7.2f} |")
print(f"{'total':-^{width + 2}} {sum(c * p for _, c, p in rows):.3f}")
