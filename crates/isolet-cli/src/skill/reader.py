"""Reads the scripts of a skill without running them: what they import, which commands they call.

`directory` and `scripts` are set. The value is a dict by script.
"""

import ast
import contextlib
import importlib.util
import os
import re
import shutil
import sys

KEYWORDS = set("if then else elif fi for while until do done case esac in function select time { } "
               "! [[ ]] coproc".split())  # fmt: skip
STARTERS = {"run", "Popen", "call", "check_call", "check_output", "getoutput", "system", "popen"}
WRAPPERS = {"sudo", "env", "time", "nohup", "xargs", "exec", "command"}
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*\Z")
CASE = re.compile(r"(?s)\bcase\b.*?\bin\b.*?\besac\b")
# A pattern of `case`, from `in`, `;;` or the start of a line to its parenthesis.
PATTERN = re.compile(
    r"(?m)(^|;;&?|;&|\bin\b)[ \t]*\(?[^\s()|;&]+([ \t]*\|[ \t]*[^\s()|;&]+)*[ \t]*\)"
)


def is_there(module):
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def python_needs(source, path, directory):
    beside = {os.path.dirname(path), directory, os.path.join(directory, "scripts")}
    packages, commands = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            packages.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            packages.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call):
            commands.update(called_commands(node))

    def is_own(name):
        places = (os.path.join(place, name) for place in beside)
        return any(os.path.exists(place + ".py") or os.path.isdir(place) for place in places)

    packages = {name for name in packages if name not in sys.stdlib_module_names}
    return {name: is_there(name) for name in packages if not is_own(name)}, commands


def called_commands(call):
    """The commands of a call of `subprocess` or `os`."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name not in STARTERS or not call.args:
        return set()
    first = call.args[0]
    if isinstance(first, (ast.List, ast.Tuple)):
        first = first.elts[0] if first.elts else None
        is_word = isinstance(first, ast.Constant) and isinstance(first.value, str)
        return {os.path.basename(first.value)} if is_word else set()
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return shell_commands(first.value) if is_text else set()


def shell_commands(source):
    """The words of a script at the places of commands."""
    text = CASE.sub(lambda case: PATTERN.sub(r"\1\n", case[0]), without_documents(source))
    found = set()
    for piece in pieces(text):
        words = piece.split()
        while words and (words[0] in KEYWORDS or ASSIGNMENT.match(words[0])):
            if words[0] in ("for", "case", "select", "function"):
                words = []
            else:
                del words[0]
        while words and words[0] in WRAPPERS:
            found.add(words.pop(0))
            while words and words[0].startswith("-"):
                del words[0]
        if words and NAME.match(words[0]) and not words[0].isdigit():
            found.add(words[0])
    return found - functions(source)


def functions(source):
    """The names of the functions that a script defines."""
    text = without_documents(source)
    found = re.findall(r"(?m)^\s*(?:function\s+)?([\w-]+)\s*\(\)", text)
    return {*found, *re.findall(r"(?m)^\s*function\s+([\w-]+)", text)}


def without_documents(source):
    """The script without the texts of here-documents."""
    lines, kept, end = source.split("\n"), [], None
    for line in lines:
        if end is not None:
            if line.strip("\t") == end:
                end = None
            continue
        kept.append(line)
        found = re.search(r"<<-?\s*(['\"]?)(\w+)\1", line)
        if found and not line.lstrip().startswith("#"):
            end = found[2]
    return "\n".join(kept).replace("\\\n", " ")


def pieces(text):
    """Splits a script where a command begins. A quoted text becomes one word that is no name."""
    found, piece, at = [], "", 0
    while at < len(text):
        c = text[at]
        if c == "\\":
            piece, at = piece + "?", at + 2
        elif c == "'":
            end = text.find("'", at + 1)
            piece, at = piece + "?", (len(text) if end < 0 else end + 1)
        elif c == '"':
            inner, at = quoted(text, at + 1)
            found += inner
            piece += "?"
        elif c == "#" and (not piece or piece[-1].isspace()):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith(("$((", "(("), at):
            end = text.find("))", at)
            piece, at = piece + "?", (len(text) if end < 0 else end + 2)
        elif text.startswith("$(", at):
            inner, at = enclosed(text, at + 2)
            found += pieces(inner)
            piece += "?"
        elif c == "(" and piece.endswith("="):
            # The words of an array.
            _, at = enclosed(text, at + 1)
            piece += "?"
        elif text.startswith("${", at):
            end = text.find("}", at)
            piece, at = piece + "?", (len(text) if end < 0 else end + 1)
        elif text.startswith(("&>", ">&", "<&"), at):
            piece, at = piece + " ", at + 2
        elif c in ";|&\n()`":
            found.append(piece)
            piece, at = "", at + 1
        elif c in "<>":
            piece, at = piece + " ? ", at + 1
        else:
            piece, at = piece + c, at + 1
    return [*found, piece]


def quoted(text, at):
    """The pieces of the substitutions in a text in double quotes, and where that ends."""
    found = []
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 2
        elif text.startswith("$(", at) and not text.startswith("$((", at):
            inner, at = enclosed(text, at + 2)
            found += pieces(inner)
        else:
            at += 1
    return found, at + 1


def enclosed(text, at):
    """The text up to the parenthesis that closes it, and where that ends."""
    start, depth = at, 1
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "'":
            end = text.find("'", at + 1)
            at = len(text) if end < 0 else end
        elif text[at] in "()":
            depth += 1 if text[at] == "(" else -1
            if depth == 0:
                break
        at += 1
    return text[start:at], at + 1


def read(script, directory):
    with open(os.path.join(directory, script), encoding="utf-8") as file:
        return file.read()


def shared_functions(scripts, directory):
    """The functions of all scripts of the shell, which one of them may `source`."""
    found = set()
    for script in scripts:
        with contextlib.suppress(OSError, ValueError):
            if not script.endswith(".py"):
                found |= functions(read(script, directory))
    return found


def needs(script, directory, shared):
    packages, commands, error = {}, set(), None
    try:
        source = read(script, directory)
        if script.endswith(".py"):
            path = os.path.join(directory, script)
            packages, commands = python_needs(source, path, directory)
        else:
            commands = shell_commands(source) - shared
    except (OSError, SyntaxError, ValueError) as problem:
        error = str(problem)
    known = {name: shutil.which(name) is not None for name in sorted(commands)}
    return {"packages": packages, "commands": known, "error": error}


shared = shared_functions(scripts, directory)  # noqa: F821
{script: needs(script, directory, shared) for script in scripts}  # noqa: F821
