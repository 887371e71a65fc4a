"""Calls whose results a cell keeps in variables to await them later, as in

    tasks = [search(word) for word in words]
    await asyncio.gather(*tasks)

They are found on the syntax tree: all that the cell does with the variable is to await it.
"""

import ast

ADDING = frozenset(["append", "add", "extend", "insert"])


class Finder:
    """Finds what a tree keeps. `taken` are arguments with the function that awaits them."""

    def __init__(self, tree, taken):
        self.uses = {}  # by name: the nodes that read it
        self.kept = []  # names with the expressions that they keep
        self.awaited = {}  # the nodes that are awaited: by this function, or at once by None
        self.filled = set()  # the nodes of what something is put into
        self.iterated = {}  # nodes to the names that take their items, one by one
        for node, taker in taken:
            self.note_taken(node, taker)
        for node in ast.walk(tree):
            self.note(node)

    def note(self, node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.uses.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Await):
            self.awaited[node.value] = None
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.note_kept(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            self.note_kept(node.target, node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            self.iterated[unwrapped(node.iter)] = node.target
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr in ADDING:
                if isinstance(function.value, ast.Name) and node.value.args:
                    self.filled.add(function.value)
                    self.kept.append((function.value.id, node.value.args[-1]))

    def note_kept(self, target, value):
        if isinstance(target, ast.Name):
            self.kept.append((target.id, value))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.filled.add(target.value)
            self.kept.append((target.value.id, value))

    def note_taken(self, node, taker):
        if isinstance(node, ast.Starred):
            self.note_taken(node.value, taker)
        elif isinstance(node, (ast.List, ast.Set, ast.Tuple)):
            for element in node.elts:
                self.note_taken(element, taker)
        else:
            self.awaited[unwrapped(node)] = taker

    def calls(self):
        """The expressions whose calls are awaited later, and the functions that await them."""
        found = []
        takers = {name: self.takers(uses) for name, uses in self.uses.items()}
        for name, value in self.kept:
            if takers.get(name) is not None:
                found.append((value, takers[name]))
        return found

    def takers(self, uses):
        """The functions that await what is read here; None if it is not awaited, or anything else
        is done with it.
        """
        found = []
        for use in uses:
            if use in self.awaited:
                found.append(self.awaited[use])
            elif use not in self.filled:
                items = self.uses.get(item_name(self.iterated.get(use)), ())
                if not items or not all(item in self.awaited for item in items):
                    return None
                found += [self.awaited[item] for item in items]
        return [taker for taker in found if taker is not None] if found else None


def item_name(target):
    """The name that a loop gives each item, also beside a key or an index."""
    if isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[-1]
    return target.id if isinstance(target, ast.Name) else None


def unwrapped(node):
    """What `enumerate(x)`, `list(x)`, `x.values()` and the like take their items of."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("values", "items"):
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id in ("enumerate", "list", "tuple"):
            if not node.args:
                break
            node = node.args[0]
        else:
            break
    return node
