"""re: groups, named groups, lookaround, flags, substitution with functions, scanners, splitting, verbose patterns, errors."""
import re

log = "2024-02-29T13:05:09 [WARN] disk sda1 at 91% (id=77)\n2024-03-01T00:00:00 [INFO] ok\nbroken line\n"
line = re.compile(
    r"""
    ^(?P<date>\d{4}-\d\d-\d\d)T(?P<time>[\d:]{8})\s+
    \[(?P<level>[A-Z]+)\]\s+          # the level in brackets
    (?P<message>.*?)
    (?:\s+\(id=(?P<id>\d+)\))?$
    """,
    re.VERBOSE | re.MULTILINE,
)
for match in line.finditer(log):
    print(match.groupdict(), match.span("level"), match.lastgroup)
print(line.groups, dict(line.groupindex), line.flags & re.M == re.M)

m = re.search(r"(\w+)\s(\w+)(!)?", "say hello world")
print(m.group(), m.group(1, 2), m.groups(), m.groups("-"), m[2], m.start(2), m.end(), m.string[m.end() :], m.expand(r"\2 \1"))
print(re.match("b", "ab"), re.fullmatch("a.", "ab").span(), re.search("^b", "a\nb", re.M).start(), bool(re.match("", "")))
print(re.findall(r"\d+", "a1b22c333"), re.findall(r"(\w)(\d)", "a1b2"), re.findall(r"x*", "axb"))
print(re.split(r"[,;]\s*", "a, b;c,d"), re.split(r"(\W)", "a-b+c"), re.split(r"\s+", " x y ", maxsplit=1), re.split("", "abc"))
print(re.sub(r"(?P<first>\w+) (?P<second>\w+)", r"\g<second> \g<first>", "hello world"), re.subn("a", "b", "banana"))
print(re.sub(r"\d+", lambda m: str(int(m[0]) * 2), "1 and 20 and 300"), re.sub("x*", "-", "abxd"), re.sub(r"\b", "|", "to be"))
print(re.sub("a", r"\\n", "cat"), re.escape("a.b*c[d]"), re.sub(re.escape("+"), "plus", "1+1"))

print("lookahead:", re.findall(r"\w+(?=!)", "wow! no yes!"), re.findall(r"\b(?!un)\w+", "undo do unit it"))
print("lookbehind:", re.findall(r"(?<=\$)\d+", "$10 20 $30"), re.findall(r"(?<!-)\b\d+", "5 -6 7"))
print("backreference:", re.findall(r"\b(\w+) \1\b", "the the cat sat sat down"), re.search(r"(?P<q>['\"]).*?(?P=q)", "say 'it' \"x\"")[0])
print("conditional:", [bool(re.fullmatch(r"(<)?\w+(?(1)>)", s)) for s in ("<a>", "a", "<a", "a>")])
print("lazy and greedy:", re.search("<.+>", "<a><b>")[0], re.search("<.+?>", "<a><b>")[0], re.search("a{2,3}?", "aaaa")[0])
print("atomic and possessive:", re.search(r"(?>a+)b", "aaab")[0], re.search(r"a++a", "aaa"), re.search(r"a*+b", "aab")[0])
print("flags:", re.findall("(?i)aB", "ab AB aB"), re.findall("a.b", "a\nb", re.S), re.findall(r"(?a:\w+)", "né"), re.findall(r"\w+", "né ñu"))
print("inline scope:", re.findall(r"(?i:a)b", "Ab AB ab"), re.findall(r"(?s-i:.)", "x\n"), re.compile("x", re.I | re.X).flags & re.I != 0)
print("classes:", re.findall(r"[^\W\d_]+", "ab1_cd é"), re.findall(r"[a\-z\]]", "a-z]b"), re.findall(r"\A\S|\S\Z", "start end"))
print("bytes:", re.findall(rb"\w+", b"raw bytes"), re.sub(b"[\x80-\xff]", b"?", "aé".encode()))
try:
    re.search("a", b"a")
except TypeError as error:
    print(type(error).__name__)
for bad in ("(", "[a", "*a", r"(?P<1>x)", r"\2", "(?<=a+)b", "a{3,1}"):
    try:
        re.compile(bad)
    except re.error as error:
        print(f"{bad!r} fails at {error.pos};", end=" ")
print()

tokens = re.compile(r"(?P<num>\d+(?:\.\d+)?)|(?P<name>[a-z_]\w*)|(?P<op>[-+*/=()])|(?P<space>\s+)|(?P<bad>.)", re.I)
print([(m.lastgroup, m[0]) for m in tokens.finditer("rate = 3.5*(x1 - 2) ?") if m.lastgroup != "space"])

email = re.compile(r"[\w.+-]+@(?:[\w-]+\.)+[a-z]{2,}", re.I)
print(email.findall("write to a.b+c@mail.example.org, not x@y or Z@Q.CO."))
print(re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", "1234567890"))
print(re.sub(r"(?<!^)(?=[A-Z])", "_", "camelCaseToSnake").lower(), re.sub(r"_(\w)", lambda m: m[1].upper(), "snake_case_name"))
print([re.sub(r"^(\s*)(.*?)\s*$", r"[\2]", s) for s in ("  a b  ", "", "x")])
roman = re.compile(r"M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
print([n for n in ("XIV", "IIII", "MCMXCIV", "VX") if roman.fullmatch(n)])
print(re.compile("a").match("ba", 1).span(), re.compile("^a").search("ba", 1), re.compile("b").fullmatch("abc", 1, 2).span())
print(repr(re.search("b+", "abbbc")), re.compile("x").pattern, re.compile("x") is re.compile("x"))
data = "key1=val1;key2=;=val3;key4"
print([(m["k"], m["v"]) for m in re.finditer(r"(?P<k>[^=;]+)(?:=(?P<v>[^;]*))?(?:;|$)", data)])
nested = re.compile(r"\(([^()]*)\)")
expression = "(a(b)(c(d)))"
while nested.search(expression):
    expression = nested.sub(lambda m: f"<{m[1]}>", expression, count=1)
print(expression, len(re.findall("(?=aba)", "ababababa")))
