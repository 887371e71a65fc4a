"""Rendering: markdown tables and a small markdown-to-HTML converter, bar charts, templates, number and duration formatting."""
import html
import re
import textwrap
import unicodedata
from dataclasses import dataclass, field
from enum import Enum


class Align(Enum):
    LEFT = (":--", "<")
    RIGHT = ("--:", ">")
    CENTRE = (":-:", "^")


def width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pad(text, size, align):
    space = size - width(text)
    match align:
        case Align.LEFT:
            return text + " " * space
        case Align.RIGHT:
            return " " * space + text
    return " " * (space // 2) + text + " " * (space - space // 2)


@dataclass
class Table:
    headers: list[str]
    aligns: list[Align] = field(default_factory=list)
    rows: list[list] = field(default_factory=list)

    def __post_init__(self):
        self.aligns = self.aligns or [Align.LEFT] * len(self.headers)

    def add(self, *cells):
        if len(cells) != (n := len(self.headers)):
            raise ValueError(f"{len(cells)} cells for {n} columns")
        self.rows.append(list(cells))
        return self

    @staticmethod
    def cell(value):
        match value:
            case None:
                return ""
            case bool():
                return "yes" if value else "no"
            case float():
                return f"{value:,.2f}"
            case int():
                return f"{value:,}"
            case list() | tuple():
                return ", ".join(map(Table.cell, value))
        return str(value).replace("|", "\\|").replace("\n", "<br>")

    def __str__(self):
        body = [[self.cell(v) for v in row] for row in self.rows]
        sizes = [max(3, *(width(row[i]) for row in [self.headers, *body])) for i in range(len(self.headers))]
        rule = [a.value[0][0] + "-" * (s - 2) + a.value[0][-1] for a, s in zip(self.aligns, sizes)]
        lines = [[pad(h, s, a) for h, s, a in zip(self.headers, sizes, self.aligns)], rule]
        lines += [[pad(c, s, a) for c, s, a in zip(row, sizes, self.aligns)] for row in body]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


table = Table(["item", "price", "stock", "日本語"], [Align.LEFT, Align.RIGHT, Align.CENTRE, Align.RIGHT])
table.add("pen | pencil", 1234.5, True, "ペン").add("caf\u00e9\u0301", -7, None, "x").add("multi\nline", 10**9, [1, 2.5, "a"], "é")
print(table)
try:
    table.add("too", "few")
except ValueError as error:
    print("ValueError:", error)


def parse_table(text):
    lines = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()]
    return [dict(zip(lines[0], row)) for row in lines[2:]]


print(parse_table(str(table))[0])


def inline(text):
    codes = []

    def keep(m):
        codes.append(f"<code>{html.escape(m[1])}</code>")
        return f"\0{len(codes) - 1}\0"

    text = html.escape(re.sub(r"`([^`]+)`", keep, text), quote=False)
    for pattern, replacement in (
        (r"!\[([^\]]*)\]\(([^)]+)\)", r'<img alt="\1" src="\2">'), (r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>'),
        (r"\*\*(.+?)\*\*", r"<strong>\1</strong>"), (r"\*(.+?)\*", r"<em>\1</em>"), (r"~~(.+?)~~", r"<del>\1</del>"),
    ):
        text = re.sub(pattern, replacement, text)
    return re.sub(r"\0(\d+)\0", lambda m: codes[int(m[1])], text)


def markdown(source):
    """Headings, paragraphs, nested-free lists, quotes, fenced code, rules and inline marks."""
    out, paragraph, open_list, lines = [], [], None, iter(textwrap.dedent(source).strip().splitlines() + [""])

    def flush():
        nonlocal open_list
        if paragraph:
            out.append(f"<p>{inline(' '.join(paragraph))}</p>")
            paragraph.clear()
        if open_list:
            out.append(f"</{open_list}>")
            open_list = None

    for line in lines:
        if m := re.match(r"(#{1,6})\s+(.*?)\s*#*$", line):
            flush()
            anchor = re.sub(r"[^a-z0-9]+", "-", m[2].lower()).strip("-")
            out.append(f'<h{len(m[1])} id="{anchor}">{inline(m[2])}</h{len(m[1])}>')
        elif line.startswith("```"):
            flush()
            code = []
            while not (line := next(lines)).startswith("```"):
                code.append(line)
            out.append(f"<pre>{html.escape(chr(10).join(code))}</pre>")
        elif m := re.match(r"(?:([-*])|(\d+)\.)\s+(.*)", line):
            kind = "ul" if m[1] else "ol"
            if open_list != kind:
                flush()
                out.append(f"<{kind}>")
                open_list = kind
            out.append(f"<li>{inline(m[3])}</li>")
        elif re.fullmatch(r"(-{3,}|\*{3,})", line):
            flush()
            out.append("<hr>")
        elif line.startswith(">"):
            flush()
            out.append(f"<blockquote>{inline(line[1:].strip())}</blockquote>")
        elif line.strip():
            paragraph.append(line.strip())
        else:
            flush()
    return "\n".join(out)


print(markdown("""
    # Report & *summary* #
    First line with `code <b>`,
    **bold**, *em* and ~~old~~ [link](http://x.org/?a=1&b=2).

    - one
    - two `*raw*`
    1. first
    2. second
    ***
    > quoted 5 > 3
    ```
    if a < b:
        print("**not bold**")
    ```
    ![alt](i.png)
    ## Über uns 2
"""))


def bars(data, size=24):
    top = max(data.values())
    for label, value in data.items():
        eighths = round(value / top * size * 8)
        bar = "█" * (eighths // 8) + ("▏▎▍▌▋▊▉"[eighths % 8 - 1] if eighths % 8 else "")
        yield f"{label:>6} {bar:<{size}} {value:g}"


def size_of(count):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.1f} {unit}" if unit != "B" else f"{count} B"
        count /= 1024


def template(text, **values):
    """{{name|filter}} and {% for x in xs %}...{% end %}."""
    filters = {"upper": str.upper, "money": lambda v: f"${v:,.2f}", "len": len}

    def loop(m):
        return "".join(template(m[3], **values, **{m[1]: item}) for item in values[m[2]])

    def value(m):
        result = values[m[1]]
        for name in filter(None, (m[2] or "").split("|")):
            result = filters[name](result)
        return str(result)

    text = re.sub(r"\{% for (\w+) in (\w+) %\}(.*?)\{% end %\}", loop, text, flags=re.S)
    return re.sub(r"\{\{\s*(\w+)((?:\|\w+)*)\s*\}\}", value, text)


print(*bars({"alpha": 12, "beta": 30.5, "gamma": 1}), sep="\n")
print([size_of(n) for n in (0, 1023, 1536, 10**7, 2**50)])
print(template("Dear {{name|upper}}, {% for i in items %}[{{i|len}}:{{ i }}]{% end %} costs {{sum|money}}", name="ann", items=["pen", "paper"], sum=1234.5))
