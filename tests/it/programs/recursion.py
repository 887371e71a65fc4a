"""What recurses deeply, each part as a function: it returns, or raises what CPython raises."""

import copy
import functools
import itertools
import json
import pickle
import time
import types

DEEP = 50_000


def nested(n=DEEP):
    value = []
    for _ in range(n):
        value = [value]
    return value


class Node:
    def __init__(self, value=None, link=None):
        self.value, self.link = value, link


class Slotted:
    __slots__ = ("link",)


class Finalized(Node):
    finalized = 0

    def __del__(self):
        def called(levels):
            return sorted([1], key=abs) if levels == 0 else called(levels - 1)

        called(8)
        Finalized.finalized += 1


def a_list_that_is_freed():
    nested(300_000)


def a_linked_list_that_is_freed():
    head = None
    for value in range(300_000):
        head = Node(value, head)


def a_long_linked_list_that_is_freed():
    head = None
    for _ in range(1_000_000):
        node = Slotted()
        node.link, head = head, node


def finalizers_of_a_list_that_is_freed():
    Finalized.finalized = 0
    head = None
    for value in range(20_000):
        head = Finalized(value, head)
    del head
    assert Finalized.finalized == 20_000, Finalized.finalized


def a_tree_of_sorted_keys_that_is_freed():
    root = last = Node(0)
    for key in range(DEEP):
        last.link = Node(key)
        last = last.link


def a_trie_that_is_freed():
    root = last = {}
    for n in range(DEEP):
        last[n % 26] = last = {}


def tuples_that_are_freed():
    value = ()
    for _ in range(DEEP):
        value = (value,)


def closures_that_are_freed():
    def outer(inner):
        return lambda: inner

    function = None
    for _ in range(DEEP):
        function = outer(function)


def generators_that_are_freed():
    def generator(inner):
        yield inner

    last = None
    for _ in range(DEEP):
        last = generator(last)
        next(last)


def coroutines_that_are_freed():
    async def coroutine(inner):
        return inner

    last = None
    import warnings

    with warnings.catch_warnings(action="ignore"):
        for _ in range(DEEP):
            last = coroutine(last)
        del last


def exceptions_that_are_freed():
    error = None
    for _ in range(DEEP):
        outer = ValueError()
        outer.__cause__ = error
        error = outer


def a_cycle_of_nodes_that_is_collected():
    import gc

    first = node = Node()
    for _ in range(DEEP):
        node = Node(None, node)
    first.link = node
    del first, node
    gc.collect()


def comparing_lists_that_hold_each_other():
    a, b = [], []
    a.append(b)
    b.append(a)
    return a == b


def comparing_deep_lists():
    return nested() == nested()


def comparing_deep_dicts():
    a = b = {}
    for _ in range(DEEP):
        a, b = {1: a}, {1: b}
    return a == b


def a_repr():
    return repr(nested())


def a_repr_of_dicts():
    value = {}
    for _ in range(DEEP):
        value = {1: value}
    return str(value)


def a_repr_that_calls_itself():
    class Own:
        def __repr__(self):
            return f"{self!r}"

    return repr(Own())


def json_that_is_read():
    return json.loads("[" * 50_000 + "]" * 50_000)


def json_objects_that_are_read():
    return json.loads('{"a":' * DEEP)


def json_that_is_written():
    return json.dumps(nested())


def json_that_is_written_with_an_indent():
    return json.dumps(nested(), indent=1)


def a_pickle():
    return pickle.dumps(nested())


def a_pickle_of_nodes():
    head = None
    for value in range(DEEP):
        head = Node(value, head)
    return pickle.dumps(head)


def a_deep_copy():
    return copy.deepcopy(nested())


def marshalled_lists():
    import marshal

    return marshal.dumps(nested())


def an_initializer_that_is_its_class():
    class Own:
        pass

    Own.__init__ = Own
    return Own()


def a_call_that_is_its_object():
    class Own:
        pass

    Own.__call__ = Own()
    return Own()()


def an_attribute_that_asks_for_itself():
    class Own:
        def __getattr__(self, name):
            return getattr(self, name)

    return Own().missing


def a_sum_that_adds_itself():
    class Own:
        def __add__(self, other):
            return self + other

    return Own() + 1


def a_hash_that_hashes_itself():
    class Own:
        def __hash__(self):
            return hash(self)

    return {Own()}


def classes_that_are_asked_for():
    kinds = int
    for _ in range(DEEP):
        kinds = (kinds,)
    return isinstance("", kinds)


def sorting_that_sorts():
    def key(item):
        return sorted([item], key=key)

    return key(1)


def mapping_that_maps():
    def mapped(item):
        return list(map(mapped, [item]))

    return mapped(1)


def code_that_runs_code():
    def run():
        eval("run()", {"run": run})

    run()


def cached_functions():
    @functools.cache
    def count(n):
        return count(n + 1)

    return count(0)


def generators_that_delegate():
    def generator():
        yield from generator()

    return next(generator())


def parsed(source):
    import ast

    ast.parse(source)
    compile(source, "<deep>", "exec")


def code_of_signs():
    parsed("-" * DEEP + "1")


def code_of_sums():
    parsed("1" + "+1" * DEEP)


def code_of_attributes():
    parsed("a" + ".a" * DEEP)


def code_of_calls():
    parsed("f" + "()" * DEEP)


def code_of_negations():
    parsed("not " * DEEP + "1")


def code_of_functions():
    parsed("lambda: " * DEEP + "1")


def code_of_alternatives():
    parsed("if a: pass\n" + "elif a: pass\n" * DEEP)


def code_of_powers():
    parsed("2" + "**2" * DEEP)


def a_tree_of_code():
    import ast

    tree = ast.Constant(1)
    for _ in range(DEEP):
        tree = ast.UnaryOp(ast.USub(), tree)
    compile(ast.fix_missing_locations(ast.Expression(tree)), "<deep>", "eval")


def an_expression_of_groups():
    import re

    re.compile("(" * DEEP + ")" * DEEP)


def elements_of_xml():
    import xml.etree.ElementTree as tree

    tree.tostring(tree.fromstring("<a>" * DEEP + "</a>" * DEEP))


def groups_of_exceptions():
    error = ValueError()
    for _ in range(DEEP):
        error = ExceptionGroup("", [error])
    return error.split(TypeError)


# What follows ends a desktop's python: CPython does not look at its stack there.


def deep(wrap, value, levels=60_000):
    for _ in range(levels):
        value = wrap(value)
    return value


def each_ends_in_an_error(calls):
    """Has each call raise, and says which did not."""
    for number, call in enumerate(calls):
        try:
            call()
        except (RecursionError, SystemError) as error:
            assert isinstance(error, RecursionError) or "exception set" in str(error), error
        else:
            raise AssertionError(f"call {number} returned")


def hashes_of_what_is_deep():
    class Own(tuple):
        pass

    def code(inner):
        return (lambda: 1).__code__.replace(co_consts=(inner,))

    each_ends_in_an_error(
        lambda wrap=wrap, first=first: hash(deep(wrap, first))
        for wrap, first in [
            (lambda inner: (inner,), ()),
            (lambda inner: Own((inner,)), ()),
            (lambda inner: slice(inner, None), 1),
            (lambda inner: types.GenericAlias(list, (inner,)), int),
            (types.MappingProxyType, {}),
            (code, ()),
        ]
    )
    each_ends_in_an_error([lambda: {deep(lambda inner: (inner,), ())}])
    each_ends_in_an_error([lambda: hash(time.struct_time([deep(lambda inner: (inner,), ())] * 9))])


def constants_of_code_that_are_deep():
    value = deep(lambda inner: (inner,), ())
    each_ends_in_an_error([lambda: (lambda: 1).__code__.replace(co_consts=(value,)) and hash(value)])


def iterators_of_iterators():
    each_ends_in_an_error(
        lambda wrap=wrap: next(deep(wrap, iter([1, 1])))
        for wrap in [
            zip,
            enumerate,
            itertools.chain,
            itertools.chain.from_iterable,
            itertools.cycle,
            itertools.accumulate,
            itertools.pairwise,
            itertools.groupby,
            itertools.zip_longest,
            functools.partial(map, abs),
            functools.partial(map, lambda item: item),
            functools.partial(filter, None),
            functools.partial(itertools.filterfalse, lambda item: False),
            functools.partial(itertools.takewhile, bool),
            functools.partial(itertools.dropwhile, lambda item: False),
            functools.partial(itertools.starmap, max),
            lambda inner: itertools.islice(inner, 3),
            lambda inner: itertools.batched(inner, 1),
            lambda inner: itertools.compress(inner, [1]),
        ]
    )


def callables_of_callables():
    def with_state(inner):
        call = functools.partial(inner)
        call.state = 1
        return call

    each_ends_in_an_error(
        lambda wrap=wrap: deep(wrap, lambda *arguments: 1)()
        for wrap in [with_state, staticmethod, functools.lru_cache]
    )
    # Each adds an argument, so fewer are deep.
    deep(lambda inner: types.MethodType(inner, 1), lambda *arguments: 1, 10_000)()


def views_of_views():
    view = deep(types.MappingProxyType, {1: 2})
    each_ends_in_an_error(
        [
            lambda: view[1],
            lambda: 1 in view,
            lambda: len(view),
            lambda: list(view),
            lambda: view | {},
        ]
    )


def generators_that_are_closed_and_thrown_at():
    def first():
        yield 1
        yield 2

    def outer(inner):
        yield from inner

    last = deep(outer, first())
    try:
        next(last)
        last.throw(KeyError)
    except KeyError:
        pass
    last = deep(outer, first())
    next(last)
    last.close()


def types_of_tuples():
    import typing

    inner = deep(lambda inner: (inner,), typing.TypeVar("T"))
    return types.GenericAlias(list, (inner,)).__parameters__


def methods_that_are_abstract():
    return deep(staticmethod, len).__isabstractmethod__


def iterators_that_ask_themselves():
    class Own:
        pass

    own = Own()
    Own.__iter__ = types.MethodType(iter, own)
    each_ends_in_an_error([lambda: iter(own)])
    Own.__hash__ = types.MethodType(hash, own)
    each_ends_in_an_error([lambda: hash(own)])
    Own.__next__ = types.MethodType(next, own)
    each_ends_in_an_error([lambda: next(own)])


def a_class_that_makes_itself():
    class Own:
        pass

    Own.__new__ = Own
    return Own()


def elements_of_xml_that_are_copied():
    import xml.etree.ElementTree as tree

    root = last = tree.Element("a")
    for _ in range(DEEP):
        last = tree.SubElement(last, "a")
    return copy.deepcopy(root)


def a_list_for_javascript():
    from pyodide.ffi import ConversionError, to_js

    try:
        to_js(nested())
    except ConversionError as error:
        assert isinstance(error.__cause__ or error, (RecursionError, ConversionError))
    else:
        raise AssertionError("it was converted")


def javascript_that_calls_python():
    from pyodide.code import run_js

    call = run_js("(f) => f()")

    def back(levels):
        return call(lambda: back(levels - 1)) if levels else check(a_repr)

    back(100)


PARTS = {
    name: part
    for name, part in list(globals().items())
    if type(part) is type(nested) and name not in ("nested", "parsed", "deep", "each_ends_in_an_error")
}


def check(part):
    """Runs a part with Python's own limit and with hardly any."""
    import sys

    usual = sys.getrecursionlimit()
    for limit in usual, 100_000:
        try:
            sys.setrecursionlimit(limit)
            part()
        except (RecursionError, MemoryError, SyntaxError, ValueError, SystemError) as error:
            text = str(error)
            words = ("recursion", "verflow", "deep", "many nested", "exception set")
            assert any(word in text for word in words), error
        finally:
            sys.setrecursionlimit(usual)


def check_all():
    for name, part in PARTS.items():
        check(part)
        print(name)
