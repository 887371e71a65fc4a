"""Plain functions of the host where a program awaits them: what can be awaited is called instead.

Programs by language models await tools out of habit. On a cell's syntax tree, what is called right
under `await`, in an argument that asyncio awaits, or for a variable that is only awaited, becomes a
call of what `choose` returns. That is decided when the call is made, and is the same function for
all but the host's.
"""

import ast
import asyncio
import builtins
import types

import _isolet_deferred as deferred
import _isolet_tools as tools

CHOOSE = "<choose>"  # among the built-ins; no guest code can spell it
# A cell without any of these awaits nothing. The second is in `asyncio` too.
WORDS = ("await", "async", "create_task", "ensure_future", "run_until_complete")
# Functions whose first argument is awaited, and one that awaits all of them.
FIRST = frozenset(
    ["as_completed", "create_task", "ensure_future", "run", "run_until_complete", "shield"]
    + ["wait", "wait_for"]
)
EACH = frozenset(["gather"])
# What that argument is called if it is passed by its name.
KEYWORDS = frozenset(["arg", "coro", "coro_or_future", "fs", "fut", "future", "main"])
METHODS = frozenset(["create_task", "run", "run_until_complete"])
OWNERS = (asyncio.TaskGroup, asyncio.AbstractEventLoop, asyncio.Runner)
LOOPS = frozenset(["get_event_loop", "get_running_loop"])
LONGEST = 8  # names in a dotted path that is looked at
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
DISPLAYS = (ast.List, ast.Set, ast.Tuple)

takers = frozenset()  # asyncio's functions


def install():
    """Notes asyncio's functions, as the guest gets them."""
    global takers
    takers = frozenset(
        getattr(asyncio, name) for name in FIRST | EACH if hasattr(asyncio, name)
    )


def is_needed(source):
    """Whether a cell may await a function of the host's."""
    return bool(tools.functions) and any(word in source for word in WORDS)


def rewrite(tree):
    """Rewrites the calls in a cell's tree that are awaited."""
    setattr(builtins, CHOOSE, choose)
    awaited, taken = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            awaited.append((node.value, []))
        elif isinstance(node, ast.Call):
            name = last_name(node.func)
            if (name in FIRST or name in EACH) and path(node.func, LONGEST) is not None:
                arguments = node.args if name in EACH else node.args[:1]
                named = [each.value for each in node.keywords if each.arg in KEYWORDS]
                taken += [(argument, node.func) for argument in (*arguments, *named)]
    awaited += [(call, [taker]) for argument, taker in taken for call in calls_in([argument])]
    for kept, takers in deferred.Finder(tree, taken).calls():
        awaited += [(call, takers) for call in calls_in([kept])]
    for call, takers in awaited:
        arguments = [call.func]
        if takers:
            # Looked up when the call is made, and then perhaps not there.
            paths = ast.Tuple([path(taker, LONGEST) for taker in takers], ast.Load())
            arguments.append(ast.Lambda(ast.arguments([], [], None, [], [], None, []), paths))
        chosen = ast.Call(ast.Name(CHOOSE, ast.Load()), arguments, [])
        for node in (chosen, chosen.func, *(ast.walk(arguments[1]) if takers else ())):
            ast.copy_location(node, call.func)
        call.func = chosen


def calls_in(arguments):
    """The calls whose results are among these arguments, or in a list that is one."""
    found = []
    asked = list(arguments)
    while asked:
        node = asked.pop()
        if isinstance(node, ast.Call):
            found.append(node)
        elif isinstance(node, ast.Starred):
            asked.append(node.value)
        elif isinstance(node, COMPREHENSIONS):
            asked.append(node.elt)
        elif isinstance(node, DISPLAYS):
            asked += node.elts
        elif isinstance(node, ast.IfExp):
            asked += [node.body, node.orelse]
        elif isinstance(node, ast.DictComp):
            asked.append(node.value)
        elif isinstance(node, ast.Dict):
            asked += node.values
    return found


def last_name(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


def path(node, longest):
    """A copy of a dotted path of names, which does no harm if it is looked up twice."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute) and longest:
        owner = path(node.value, longest - 1)
        return owner and ast.Attribute(owner, node.attr, ast.Load())
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        function = path(node.func, longest) if last_name(node.func) in LOOPS else None
        return function and ast.Call(function, [], [])
    return None


def choose(function, takers=None):
    """What is called in a function's place, where the result is awaited or given to `takers`."""
    if type(function) is not types.FunctionType and function is not map:
        return function
    try:
        takers = takers() if takers else ()
    except (NameError, AttributeError):
        return function
    if not all(awaits(taker) for taker in takers):
        return function
    if function is map:
        return map_awaited if takers else map
    aio = tools.awaitable.get(function)
    if aio is None:
        return function
    if asyncio.wait in takers:  # takes no coroutines
        return lambda *args, **kwargs: asyncio.ensure_future(aio(*args, **kwargs))
    return aio


def awaits(taker):
    kind = type(taker)
    if kind is types.MethodType:
        return taker.__name__ in METHODS and issubclass(type(taker.__self__), OWNERS)
    return kind in (types.FunctionType, types.BuiltinFunctionType) and taker in takers


def map_awaited(function, *iterables, **options):
    return map(choose(function), *iterables, **options)
