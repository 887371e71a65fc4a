"""What a notebook's cell has besides Python: indentation, prompts, commands such as `%time f()`.

A command becomes a call of `get_ipython()`, as IPython has it, on the same line: lines keep their
numbers. Only where a statement begins, or after the `=` of an assignment, is a command one.
"""

import os
import re

# Whether there may be a command: most cells are done after these.
SIGNS = ("%", "!", "?")
CANDIDATE = re.compile(r"(?:^|=)[ \t]*[%!?]|\?[ \t]*$", re.M)

BLANK = re.compile(r"(?:[ \t\r\f\v]*\n)*")
INDENT = re.compile(r"[ \t]+")
INDENT_OF = re.compile(r"[ \t]*").match
# By the first prompt of a cell, what the lines may begin with.
CLASSIC = re.compile(r"(?:>>>|\.\.\.)(?: |$)", re.M)
NUMBERED = re.compile(r"(?:In \[\d+\]: |[ \t]*\.{3,}: ?)", re.M)
CELL = re.compile(r"%%(?!\w+\?)([^\s]*)[ \t]*(.*)")
COMMAND = re.compile(r"([ \t]*)([%!?])")
# What the rest of a line of a command is: a line that ends in a backslash goes on.
LINE = re.compile(r"(?:[^\\\n]|\\(?!\n)|\\\n)*")
HELP = re.compile(r"(%{0,2}(?!\d)[\w*]+(?:\.(?!\d)[\w*]+|\[[0-9]+\])*)(\?\??)$")
TOKEN = re.compile(
    r"""\#[^\n]*
    | (?<!\w)(?P<prefix>[A-Za-z]{1,2})?(?P<quote>\"{3}|'{3}|["'])
    | (?P<late>\"{3}|'{3}|["'])
    | (?P<open>[\[({]) | (?P<close>[\])}])
    | \\\n | (?P<end>\n)
    | (?<![=!<>:+\-*/%&|^@])=[ \t]*(?P<assigned>%(?=[^\W\d])|!(?!=))
    | (?P<help>\?\??)(?=[ \t]*$)""",
    re.X | re.M,
)
PLAIN_ENDS = {
    quote: re.compile(
        rf"[^\\{quote}\n]*(?:\\.[^\\{quote}\n]*)*{quote}?", re.S
    )
    for quote in "\"'"
} | {
    quote * 3: re.compile(rf"[^\\{quote}]*(?:(?:\\.|{quote}(?!{quote * 2}))[^\\{quote}]*)*", re.S)
    for quote in "\"'"
}
# What matters between the quotes of an f-string, and within the braces of one.
LITERAL = re.compile(r"\\[^{}]|\{\{|\}\}|\{|\"{3}|'{3}|[\"'\n]", re.S)
FIELD = re.compile(
    r"""\#[^\n]* | (?<!\w)(?P<prefix>[A-Za-z]{1,2})?(?P<quote>\"{3}|'{3}|["'])
    | (?P<open>[\[({]) | (?P<close>[\])}]) | (?P<format>:)""",
    re.X,
)


def unindented(source):
    """The cell without the indentation that its lines share, without that of its first line, and
    without the prompts of a session: as one version of IPython or another has it.
    """
    start = BLANK.match(source).end()
    if INDENT.match(source, start) is not None:
        lines = source[start:].split("\n")
        indents = [INDENT_OF(line)[0] for line in lines if line.strip()]
        shared = len(os.path.commonprefix(indents))
        lines = [line[shared:] for line in lines]
        first = INDENT_OF(lines[0])[0]
        source = source[:start] + "\n".join([line.removeprefix(first) for line in lines])
    for prompt, first in ((CLASSIC, ">>>"), (NUMBERED, "In [")):
        if source.startswith(first, start) and prompt.match(source, start):
            lines = source[start:].split("\n")
            ends = [found.end() if (found := prompt.match(line)) else 0 for line in lines]
            lines = [line[end:] for line, end in zip(lines, ends)]
            return source[:start] + "\n".join(lines)
    return source


def translated(source):
    """The cell as Python, and the numbers of the lines that are commands."""
    if not any(sign in source for sign in SIGNS) or not CANDIDATE.search(source):
        return source, ()
    start = BLANK.match(source).end()
    cell = CELL.match(source, start)
    if cell is not None:
        name, line = cell[1], cell[2].rstrip()
        body = source[cell.end() + 1 :]
        body += "\n" if body and not body.endswith("\n") else ""
        return f"{source[:start]}{call('run_cell_magic', name, line, body)}", {
            source.count("\n", 0, start) + 1
        }
    return Translation(source).whole()


class Translation:
    """A cell on the way to Python, read from its first character to its last."""

    def __init__(self, source):
        self.source = source
        self.parts = []
        self.kept = 0  # up to where the parts go
        self.commands = set()

    def whole(self):
        source = self.source
        at = begin = depth = 0
        while begin <= len(source):
            if at == begin and (command := COMMAND.match(source, at)) is not None:
                at = self.statement(at, command)
            token = TOKEN.search(source, at)
            if token is None:
                break
            at = token.end()
            if quote := token["quote"] or token["late"]:
                at = string_end(source, at, quote, token["prefix"] or "")
            elif token["open"]:
                depth += 1
            elif token["close"]:
                depth = max(depth - 1, 0)
            elif token["end"]:
                if not depth:
                    begin = at
            elif depth:
                continue
            elif sign := token["assigned"]:
                at = self.assigned(token.start("assigned"), sign)
            elif token["help"]:
                at = self.help(begin, at)
        return "".join([*self.parts, source[self.kept :]]), self.commands

    def statement(self, at, command):
        """Replaces a line that is a command; where it ends."""
        indent, sign = command[1], command[2]
        end = LINE.match(self.source, at).end()
        line = joined(self.source[at + len(indent) : end])
        found = HELP.search(line) if sign != "!" else None
        if found is not None:
            python = help_call(found)
        elif sign == "%":
            name, _, rest = line[1:].partition(" ")
            if not name:  # as older notebooks have it
                name, _, rest = rest.strip().partition(" ")
            python = call("run_line_magic", name, rest)
        elif sign == "!":
            name = "getoutput" if line.startswith("!!") else "system"
            python = call(name, line.lstrip("!") if name == "getoutput" else line[1:])
        else:
            asked = line.strip("?").strip()
            python = (
                call("run_line_magic", pinfo("??" if line.startswith("??") else "?", asked), asked)
                if asked
                else call("show_usage")
            )
        return self.replace(at, end, indent + python)

    def assigned(self, at, sign):
        end = LINE.match(self.source, at).end()
        line = joined(self.source[at + 1 : end])
        if sign == "!":
            return self.replace(at, end, call("getoutput", line))
        name, _, rest = line.partition(" ")
        return self.replace(at, end, call("run_line_magic", name, rest))

    def help(self, begin, at):
        line = self.source[begin:at]
        found = HELP.search(line)
        if found is None or "\n" in line:
            return at  # and a syntax error
        indent = line[: len(line) - len(line.lstrip())]
        return self.replace(begin, at, indent + help_call(found))

    def replace(self, start, end, python):
        lines = self.source.count("\n", start, end)
        self.commands.add(self.source.count("\n", 0, start) + 1)
        self.parts += [self.source[self.kept : start], python]
        self.kept = end
        # The lines that the command went on to are empty now.
        self.parts.append("\n" * lines)
        return end


def joined(text):
    """A command without the ends of its lines."""
    return text.replace("\\\n", " ").rstrip("\r")


def call(method, *arguments):
    return f"get_ipython().{method}({', '.join(map(repr, arguments))})"


def help_call(found):
    return call("run_line_magic", pinfo(found[2], found[1]), found[1])


def pinfo(sign, asked):
    """The command that tells of an object."""
    return "pinfo2" if sign == "??" else "psearch" if "*" in asked else "pinfo"


def string_end(source, at, quote, prefix):
    """Where a string ends whose first quote ends here."""
    if "f" in prefix.lower() or "t" in prefix.lower():
        return formatted_end(source, at, quote)
    end = PLAIN_ENDS[quote].match(source, at).end()
    return end + (3 if len(quote) == 3 and source.startswith(quote, end) else 0)


def formatted_end(source, at, quote):
    while (found := LITERAL.search(source, at)) is not None:
        at = found.end()
        if found[0] == quote:
            break
        if found[0] == "{":
            at = field_end(source, at)
        elif found[0] == "\n" and len(quote) == 1:
            return at - 1  # it is not closed
        elif len(found[0]) == 3 and len(quote) == 1 and found[0][0] == quote:
            return found.start() + 1
    return at if found is not None else len(source)


def field_end(source, at):
    """Where the braces end, of which the first ends here."""
    depth, is_format = 0, False
    while (found := FIELD.search(source, at)) is not None:
        at = found.end()
        if is_format:
            if found["open"] == "{":
                at = field_end(source, at)
            elif found["close"] == "}":
                return at
        elif quote := found["quote"]:
            at = string_end(source, at, quote, found["prefix"] or "")
        elif found["open"]:
            depth += 1
        elif found["close"]:
            if not depth:
                return at
            depth -= 1
        elif found["format"] and not depth:
            is_format = True
    return len(source)
