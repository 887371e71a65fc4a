"""argparse over given lists and sys.argv, and logging to stdout: subcommands, types, errors, handlers, filters, formatters."""
import argparse
import io
import logging
import sys


class Refused(Exception):
    pass


class Parser(argparse.ArgumentParser):
    """Raises where the standard parser would print usage to stderr and exit."""

    def error(self, message):
        raise Refused(self.prog)


def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be positive")
    return value


class KeyValue(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        pairs = dict(getattr(namespace, self.dest) or {})
        key, _, value = values.partition("=")
        pairs[key] = value
        setattr(namespace, self.dest, pairs)


parser = Parser(prog="tool", allow_abbrev=False)
parser.add_argument("-v", "--verbose", action="count", default=0)
parser.add_argument("--level", choices=["low", "high"], default="low")
parser.add_argument("--set", dest="settings", action=KeyValue, metavar="K=V")
parser.add_argument("--ratio", type=float, nargs="?", const=0.5)
parser.add_argument("--colour", action=argparse.BooleanOptionalAction, default=True)
commands = parser.add_subparsers(dest="command", required=True)
add = commands.add_parser("add")
add.add_argument("numbers", type=positive, nargs="+")
add.add_argument("--by", type=int, default=1)
show = commands.add_parser("show", aliases=["s"])
show.add_argument("name", nargs="?", default="everything")
group = show.add_mutually_exclusive_group()
group.add_argument("--json", action="store_const", const="json", dest="form")
group.add_argument("--text", action="store_const", const="text", dest="form")
add.set_defaults(run=lambda a: sum(a.numbers) * a.by)
show.set_defaults(run=lambda a: f"{a.name} as {a.form or 'default'}")

for line in (
    "add 1 2 3 --by 10", "-vv --level high show", "--set a=1 --set b=x=y s thing --json", "--ratio -v show", "--ratio 0.25 --no-colour add 7",
    "", "add", "add x", "add -- -3", "--level middle show", "show --json --text", "--unknown show", "show a b",
):
    try:
        arguments = parser.parse_args(line.split())
        shown = {k: v for k, v in sorted(vars(arguments).items()) if k != "run"}
        print(f"{line!r}: {arguments.run(arguments)} {shown}")
    except Refused as error:
        print(f"{line!r}: refused by {error}")
known, rest = parser.parse_known_args(["show", "n", "--later", "1"])
print(known.name, rest, argparse.Namespace(a=1) == argparse.Namespace(a=1), "command" in known)
simple = argparse.ArgumentParser(prog="simple", description="A description.", add_help=False)
simple.add_argument("file")
print(simple.format_usage().strip(), "A description." in simple.format_help())
print("argv:", len(sys.argv), isinstance(sys.argv[0], str), simple.parse_args(["x.txt"]).file, Parser().parse_args(sys.argv[1:]))
versioned = Parser(prog="v")
versioned.add_argument("--version", action="version", version="%(prog)s 1.2")
try:
    versioned.parse_args(["--version"])
except SystemExit as error:
    print("version exits with", error.code)

handler = logging.StreamHandler(sys.stdout)
handler.setFormatter(logging.Formatter("%(levelname)-8s %(name)s %(funcName)s: %(message)s"))
root = logging.getLogger("app")
root.addHandler(handler)
root.propagate = False
root.setLevel(logging.INFO)
child = logging.getLogger("app.db")


class Redact(logging.Filter):
    def filter(self, record):
        record.msg = record.getMessage().replace("hunter2", "***")
        record.args = ()
        return "drop" not in record.msg


handler.addFilter(Redact())


def work():
    child.info("password is %s", "hunter2")
    child.debug("not shown")
    child.warning("%(a)s and %(b)05.1f", {"a": "x", "b": 2})
    root.error("please drop this")
    root.log(35, "custom level")
    try:
        {}["key"]
    except KeyError:
        root.critical("failed", exc_info=False, extra={"request": 5})


work()
print(child.getEffectiveLevel(), child.isEnabledFor(logging.DEBUG), logging.getLevelName(30), logging.getLevelName("INFO"), child.parent is root, root.hasHandlers())
captured = io.StringIO()
detail = logging.StreamHandler(captured)
detail.setLevel(logging.WARNING)
detail.setFormatter(logging.Formatter("{levelname[0]}|{message}|{request}", style="{", defaults={"request": "-"}))
child.addHandler(detail)
child.setLevel(logging.DEBUG)
child.debug("debug now shown by the parent's handler")
child.error("with extra", extra={"request": 9})
root.removeHandler(handler)
try:
    1 / 0
except ZeroDivisionError:
    child.exception("division")
lines = captured.getvalue().splitlines()
print(lines[0], lines[1], lines[-1], len(lines) > 3)


class Collect(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append((record.levelno, record.getMessage(), record.name))


collect = Collect()
adapter = logging.LoggerAdapter(logging.getLogger("other"), {"user": "ann"})
adapter.logger.addHandler(collect)
adapter.logger.propagate = False
adapter.process = lambda msg, kwargs: (f"[{adapter.extra['user']}] {msg}", kwargs)
adapter.warning("hello %d", 5)
adapter.info("below the root's WARNING")
logging.disable(logging.ERROR)
adapter.error("disabled")
logging.disable(logging.NOTSET)
adapter.error("enabled again")
print(collect.records)
