"""`return` at the top level of a cell: the cell becomes the body of a loop that `return` breaks.

`break` leaves blocks as `return` does: `finally` runs, `with` exits without an exception, and no
`except` sees it. A function around the cell would have another scope, and an exception could be
caught.
"""

import ast

# No guest code can spell these names, and those that begin with `_` are not listed.
RETURN = "_<return>"  # a tuple of the value or of nothing, from `return` on; else None
PENDING = "_<return {}>"  # where that is kept while a `finally` runs

LOOPS = (ast.For, ast.AsyncFor, ast.While)
WITHS = (ast.With, ast.AsyncWith)
TRIES = (ast.Try, ast.TryStar)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def rewrite(tree, file_name, flags):
    """Rewrites the statements `return` at the top level of a cell, if there are any."""
    holders = holders_of(tree)
    first = next((at for at, node in enumerate(tree.body) if node in holders), None)
    if first is not None:
        rest = tree.body[first:]
        cell = Cell(holders, file_name, flags)
        cell.rewrite(rest, in_loop=False)
        start, end = rest[0], rest[-1]
        loop = ast.While(ast.Constant(True), [*rest, like(end, ast.Break())], [])
        prepared = like(start, assign([RETURN, *cell.pending], ast.Constant(None)))
        tree.body[first:] = [prepared, like(start, loop)]
        ast.fix_missing_locations(tree)


def take(namespace, variable):
    """Binds what a cell has returned to the variable, if it has returned a value."""
    if returned := namespace.get(RETURN):
        namespace[variable] = returned[0]


def forget(namespace):
    """Removes the variables that the rewritten code has bound."""
    if namespace.pop(RETURN, forget) is not forget:
        number = 0
        while namespace.pop(PENDING.format(number), forget) is not forget:
            number += 1


def holders_of(tree):
    """The statements that `return` is in, and those that are `return`."""
    holders, asked = set(), [(tree, ())]
    while asked:
        node, parents = asked.pop()
        if isinstance(node, ast.Return):
            holders.add(node)
            while parents:
                parent, parents = parents
                holders.add(parent)
        elif not isinstance(node, (ast.expr, *SCOPES)):
            asked += [(child, (node, parents)) for child in ast.iter_child_nodes(node)]
    return holders


class Cell:
    """A cell that is being rewritten."""

    def __init__(self, holders, file_name, flags):
        self.holders = holders
        self.file_name = file_name
        self.flags = flags
        self.pending = []

    def rewrite(self, statements, in_loop):
        """Rewrites statements, in place. `in_loop` says whether a loop of the guest's is around
        them.
        """
        written = []
        for node in statements:
            written += self.rewritten(node, in_loop)
        statements[:] = written

    def rewritten(self, node, in_loop):
        if isinstance(node, ast.Return):
            value = ast.Tuple([] if node.value is None else [node.value], ast.Load())
            return [like(node, assign([RETURN], value)), like(node, ast.Break())]
        if isinstance(node, (ast.Break, ast.Continue)) and not in_loop:
            # It would end the loop that is made here. Python's own refusal is raised instead.
            alone = ast.Module([node], [])
            compile(alone, self.file_name, "exec", self.flags, dont_inherit=True)
        written = [node]
        if isinstance(node, ast.If):
            self.rewrite(node.body, in_loop)
            # As many `elif` may follow as Python takes.
            while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
                node = node.orelse[0]
                self.rewrite(node.body, in_loop)
            self.rewrite(node.orelse, in_loop)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self.rewrite(case.body, in_loop)
        elif isinstance(node, LOOPS):
            if self.holds(node.body):
                is_returning = ast.Compare(name(RETURN), [ast.IsNot()], [ast.Constant(None)])
                written.append(like(node, ast.If(is_returning, [ast.Break()], [])))
            self.rewrite(node.body, True)
            self.rewrite(node.orelse, in_loop)
        elif isinstance(node, WITHS):
            if self.holds(node.body):
                # It may have suppressed an exception that came on the way out.
                written.append(cancel(node))
            self.rewrite(node.body, in_loop)
        elif isinstance(node, TRIES):
            self.rewrite_try(node, in_loop)
        return written

    def rewrite_try(self, node, in_loop):
        is_cancelled = self.holds(node.body)
        is_finished = is_cancelled or self.holds(node.handlers) or self.holds(node.orelse)
        self.rewrite(node.body, in_loop)
        for handler in node.handlers:
            self.rewrite(handler.body, in_loop)
            if is_cancelled:
                # The exception came on the way out, and replaces the return.
                handler.body.insert(0, cancel(handler))
        self.rewrite(node.orelse, in_loop)
        self.rewrite(node.finalbody, in_loop)
        if is_finished and node.finalbody:
            # What is in there begins as if there were no return, and may replace it.
            kept = PENDING.format(len(self.pending))
            self.pending.append(kept)
            first, last = node.finalbody[0], node.finalbody[-1]
            node.finalbody[:0] = [like(first, assign([kept], name(RETURN))), cancel(first)]
            node.finalbody.append(like(last, assign([RETURN], name(kept))))

    def holds(self, statements):
        return any(node in self.holders for node in statements)


def cancel(node):
    return like(node, assign([RETURN], ast.Constant(None)))


def assign(names, value):
    return ast.Assign([ast.Name(name, ast.Store()) for name in names], value)


def name(variable):
    return ast.Name(variable, ast.Load())


def like(node, made):
    """Puts a made statement into the lines of one of the cell's."""
    return ast.copy_location(made, node)
