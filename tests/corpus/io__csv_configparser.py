"""csv, configparser and tomllib: dialects, quoting, dict readers, sniffing, sections, interpolation, typed values, TOML."""
import configparser
import csv
import io
import tomllib
from collections import Counter, defaultdict

source = '''name,qty,note
"Smith, Ann",3,"said ""hi"""
Bob,,"two
lines"
 Cy ,7,plain
'''
rows = list(csv.reader(io.StringIO(source)))
print(rows, len(rows))
reader = csv.DictReader(io.StringIO(source), restkey="rest", restval="missing")
print([dict(r) for r in reader], reader.fieldnames, reader.line_num)
print(list(csv.DictReader(io.StringIO("a,b\n1\n1,2,3,4\n"), restkey="rest", restval="-")))
print(list(csv.reader(["a;b;'c;d'", "e|f"], delimiter=";", quotechar="'")), list(csv.reader(["a\\,b,c"], escapechar="\\")), list(csv.reader(["1, 2,  3"], skipinitialspace=True)), list(csv.reader(['"1",2,"x"'], quoting=csv.QUOTE_NONNUMERIC)))

for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC):
    out = io.StringIO()
    writer = csv.writer(out, quoting=quoting, lineterminator="|")
    writer.writerow(["a b", "c,d", 'e"f', 5, 2.5, None, "", "last"])
    print(repr(out.getvalue()))
out = io.StringIO(newline="")
writer = csv.DictWriter(out, ["id", "name"], extrasaction="ignore", restval="?")
writer.writeheader()
writer.writerows([{"id": 1, "name": "x", "extra": 0}, {"id": 2}])
print(repr(out.getvalue()))
for bad in (lambda: csv.DictWriter(io.StringIO(), ["a"]).writerow({"b": 1}), lambda: list(csv.reader(['"open'], strict=True)), lambda: csv.writer(io.StringIO(), quoting=csv.QUOTE_NONE).writerow(["a,b"]), lambda: csv.writer(io.StringIO(), delimiter="ab"), lambda: list(csv.reader(["a" * 200000]))):
    try:
        bad()
    except (csv.Error, ValueError, TypeError) as error:
        print(type(error).__name__, end=" ")
print()


class Pipes(csv.excel):
    delimiter, lineterminator = "|", "\n"


csv.register_dialect("pipes", Pipes)
print(list(csv.reader(["x|y|z"], "pipes")), "pipes" in csv.list_dialects(), csv.get_dialect("pipes").delimiter)
csv.unregister_dialect("pipes")
sniffed = csv.Sniffer().sniff("a;b;c\n1;2;3\n4;5;6\n", delimiters=";,")
print(repr(sniffed.delimiter), csv.Sniffer().has_header("name;age\nann;30\nbob;25\n"))
original = [["plain", 'q"uote', "comma,", "multi\nline", "ünï", "", " pad "]]
buffer = io.StringIO(newline="")
csv.writer(buffer).writerows(original)
assert list(csv.reader(io.StringIO(buffer.getvalue(), newline=""))) == original

sales = """region,product,units,price
north,pen,10,1.50
south,pen,4,1.50
north,ink,3,7.25
east,pad,,2
south,ink,x,7.25
"""
totals, problems, products = defaultdict(float), [], Counter()
for number, row in enumerate(csv.DictReader(io.StringIO(sales)), 2):
    try:
        totals[row["region"]] += int(row["units"]) * float(row["price"])
        products[row["product"]] += int(row["units"])
    except ValueError:
        problems.append((number, row["units"]))
print(dict(totals), problems, products.most_common())

config = configparser.ConfigParser(interpolation=configparser.ExtendedInterpolation())
config.read_string("""
[DEFAULT]
root = /srv
debug = no

[paths]
data = ${root}/data
logs : ${data}/logs
multi =
    first
    second

[server]
# a comment
host = example.org
port = 8080
ratio = 0.75
debug = On
log = ${paths:logs}/server.log
""")
server = config["server"]
print(config.sections(), server.getint("port") + 1, server.getfloat("ratio"), server.getboolean("debug"), config["paths"].getboolean("debug"), server["log"], server.get("none", "fallback"), config.getint("server", "none", fallback=5))
print(config["paths"]["multi"].split(), list(config["server"]), "HOST" in server, config.has_option("paths", "host"), config.defaults()["root"])
config["new"] = {"a": "1", "b": "x=y"}
config.remove_option("server", "ratio")
config.set("paths", "data", "/other")
written = io.StringIO()
config.write(written, space_around_delimiters=False)
print(written.getvalue().strip())
for bad in ("[a]\n[a]\n", "key = 1\n", "[a]\nx=1\nx=2\n", "[a]\nx=${none}\n", "[a]\nno value\n"):
    broken = configparser.ConfigParser(interpolation=configparser.ExtendedInterpolation())
    try:
        broken.read_string(bad)
        print(broken["a"]["x"])
    except configparser.Error as error:
        print(type(error).__name__, end=" ")
print()
loose = configparser.ConfigParser(allow_no_value=True, delimiters=("=",), comment_prefixes=(";",), strict=False)
loose.optionxform = str
loose.read_string("[Main]\nFlag\nKey: odd = %(Other)s!\nOther = o\n; skip\nFlag = again\n")
print(dict(loose["Main"]), loose.get("Main", "Key: odd", raw=True))

document = tomllib.loads("""
title = "TOML"
[owner]
born = 1979-05-27T07:32:00-08:00
day = 1979-05-27
at = 07:32:00
[database]
ports = [8000, 8_001, 0xff, 0b11]
limits = { cpu = 79.5, inf = inf, on = true }
text = '''raw \\n'''
multi = \"\"\"one \\
   line\"\"\"
[[fruit]]
name = "apple"
[[fruit.variety]]
name = "red"
[[fruit]]
name = "kiwi"
""")
print(document["owner"], document["database"], document["fruit"], sep="\n")
for bad in ("a = ", "a = 1\na = 2", "[t]\n[t]", "a = 01", "x = 'open"):
    try:
        tomllib.loads(bad)
    except tomllib.TOMLDecodeError as error:
        print(type(error).__name__, end=" ")
print()
