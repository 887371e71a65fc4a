"""Cells as code: what becomes of their text before it runs."""

import ast
import linecache

import _isolet_awaits as awaits
import _isolet_commands as commands
import _isolet_returns as returns

TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FUTURE_FLAGS = 0x1FF0000  # every __future__ flag of this CPython
VALUE = "<value>"  # holds the last expression's value for a moment; no guest code can spell it
KEPT_CELLS = 64  # compiled, for when they run again
KEPT_SOURCE = 4096  # characters of the longest that is kept

compiled = {}  # source, name and flags of cells to what they were compiled to
future_flags = 0


def compile_cell(source, name, may_return, shell=None):
    """The cell's code, which binds `VALUE` to the value of a last expression, and its text as
    tracebacks show it. That of a cell that ran before is kept.

    With a shell, the cell may have commands of IPython.
    """
    global future_flags
    flags = future_flags | TOP_LEVEL_AWAIT
    has_awaits = awaits.is_needed(source)
    key = (source, name, flags, may_return, has_awaits, shell and shell.interactivity())
    known = compiled.get(key)
    if known is None:
        known = translate(source, name, flags, may_return, has_awaits, shell)
        if len(source) <= KEPT_SOURCE:
            while len(compiled) >= KEPT_CELLS:
                del compiled[next(iter(compiled))]
            compiled[key] = known
    future_flags |= known[0].co_flags & FUTURE_FLAGS
    return known


def translate(source, name, flags, may_return, has_awaits, shell):
    if shell is None:
        tree = compile(source, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    else:
        source = commands.unindented(source)
        python, lines = commands.translated(source)
        tree = compile(python, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        shell.arrange(tree, python)
        if lines:
            place(tree, source, lines)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        target = ast.copy_location(ast.Name(VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    if may_return:
        returns.rewrite(tree, name, flags)
    if has_awaits:
        awaits.rewrite(tree)
    return compile(tree, name, "exec", flags, dont_inherit=True), source


def place(tree, source, lines):
    """Has what stands for a command take up its whole line, so that tracebacks mark no part."""
    texts = source.split("\n")
    for node in ast.walk(tree):
        number = getattr(node, "lineno", None)
        if number in lines:
            text = texts[number - 1]
            node.end_lineno = number
            node.col_offset = len(text) - len(text.lstrip())
            node.end_col_offset = len(text.encode())


def remember_source(code, source, name):
    """Lets tracebacks show the lines of a cell, also when later cells have the same name."""
    if name.startswith("<"):
        linecache._register_code(code, source, name)
    else:
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)


def forget():
    compiled.clear()
    linecache.clearcache()
