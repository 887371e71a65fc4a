"""inspect, ast, symtable, tokenize, code objects: signatures, trees, transforms, a safe evaluator, compiling by hand."""
import ast
import inspect
import io
import keyword
import symtable
import tokenize
import types


class Animal:
    """Base of animals."""

    kingdom = "animalia"

    def __init__(self, name: str, /, *, legs: int = 4) -> None:
        self.name, self.legs = name, legs

    def speak(self, times=1):
        """Make a noise."""

    @staticmethod
    def helper(a, *rest): ...

    @classmethod
    def build(cls, **options): ...

    @property
    def size(self):
        return 1


class Dog(Animal):
    def speak(self, times=2): ...


print(inspect.signature(Animal), inspect.signature(Animal.speak), inspect.signature(Dog("rex").speak), inspect.signature(Animal.build))
print([(n, type(v).__name__) for n, v in vars(Animal).items() if not n.startswith("__")])
print([n for n, _ in inspect.getmembers(Dog, inspect.isfunction)], inspect.getdoc(Dog.speak), inspect.getdoc(Animal), inspect.getmro(Dog)[1].__name__)
parameter = inspect.signature(Animal).parameters["legs"]
print(parameter.kind.description, parameter.default, parameter.annotation is int, inspect.signature(Animal).replace(parameters=[]), inspect.Parameter.empty is inspect.signature(len).return_annotation)
print([f(Animal.speak) for f in (inspect.isfunction, inspect.ismethod, inspect.isclass)], inspect.ismethod(Dog("x").speak), inspect.isbuiltin(len), inspect.isdatadescriptor(Animal.size), inspect.ismodule(ast), inspect.isgenerator(x for x in []))


def generator():
    x = yield 1
    yield x


async def coroutine(): ...


g = generator()
states = [inspect.getgeneratorstate(g)]
next(g)
states += [inspect.getgeneratorstate(g), inspect.getgeneratorlocals(g)]
g.close()
print(states, inspect.getgeneratorstate(g), inspect.isgeneratorfunction(generator), inspect.iscoroutinefunction(coroutine))
outer = (lambda k: lambda v: v + k)(3)
print(inspect.getclosurevars(outer).nonlocals, inspect.getcallargs(outer, 5), inspect.unwrap(outer) is outer, inspect.cleandoc("  a\n    b\n  c"), outer.__code__.co_name)

source = '''
import math as m
from os.path import join, split

def area(r: float, *, scale=1.0) -> float:
    """Doc."""
    return scale * m.pi * r ** 2

class Shape(Base, metaclass=Meta):
    sides: int = 4
    async def wait(self, *args, **kw): await self.x[1:2]

result = [f(x) for x in range(10) if x % 2 == 0 and not x > 6] or {"k": (1, *rest)}
total = lambda a, b=2: a if a else -b
'''
tree = ast.parse(source)
print([type(node).__name__ for node in tree.body])
print(sorted({type(node).__name__ for node in ast.walk(tree)} & {"Call", "BinOp", "Await", "Starred", "Lambda", "ListComp", "Slice", "IfExp", "Try"}))
function = tree.body[2]
print(function.name, [a.arg for a in function.args.args + function.args.kwonlyargs], ast.get_docstring(function), ast.unparse(function.returns), function.lineno, function.end_lineno, ast.get_source_segment(source, function.body[1].value))
print(ast.unparse(tree.body[4]), ast.unparse(tree.body[5]), sep="\n")
assert ast.dump(ast.parse(ast.unparse(tree))) == ast.dump(tree)


class Names(ast.NodeVisitor):
    def __init__(self):
        self.loads, self.calls, self.depth = set(), [], 0

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.loads.add(node.id)

    def visit_Call(self, node):
        self.calls.append(ast.unparse(node.func))
        self.generic_visit(node)


names = Names()
names.visit(tree)
print(sorted(names.loads), names.calls)


class Fold(ast.NodeTransformer):
    """Folds constant arithmetic and renames a variable."""

    operators = {ast.Add: lambda a, b: a + b, ast.Mult: lambda a, b: a * b, ast.Sub: lambda a, b: a - b}

    def visit_BinOp(self, node):
        self.generic_visit(node)
        match node:
            case ast.BinOp(ast.Constant(a), op, ast.Constant(b)) if type(op) in self.operators:
                return ast.copy_location(ast.Constant(self.operators[type(op)](a, b)), node)
        return node

    def visit_Name(self, node):
        return ast.copy_location(ast.Name("renamed", node.ctx), node) if node.id == "old" else node


folded = ast.fix_missing_locations(Fold().visit(ast.parse("old + (2 * 3 + 4) * 5 - f(1 + 1)", mode="eval")))
print(ast.unparse(folded), eval(compile(folded, "folded", "eval"), {"renamed": 1, "f": lambda n: n * 100}))


def evaluate(node, variables):
    """A safe calculator over a whitelist of node types."""
    match node:
        case str():
            return evaluate(ast.parse(node, mode="eval").body, variables)
        case ast.Constant(int() | float() as value):
            return value
        case ast.Name(id=name):
            return variables[name]
        case ast.BinOp(left, op, right):
            a, b = evaluate(left, variables), evaluate(right, variables)
            return {ast.Add: a.__add__, ast.Sub: a.__sub__, ast.Mult: a.__mul__, ast.Mod: a.__mod__, ast.Pow: a.__pow__}[type(op)](b)
        case ast.UnaryOp(ast.USub(), operand):
            return -evaluate(operand, variables)
        case ast.Compare(left, [ast.Lt()], [right]):
            return evaluate(left, variables) < evaluate(right, variables)
        case ast.IfExp(test, yes, no):
            return evaluate(yes if evaluate(test, variables) else no, variables)
    raise ValueError(f"not allowed: {type(node).__name__}")


print(evaluate("-x ** 2 + 3 * (y - 1)", {"x": 3, "y": 5}), evaluate("1 if x < 2 else 7 % 4", {"x": 5}))
for bad in ("__import__('os')", "x.y", "[1]", "lambda: 0"):
    try:
        evaluate(bad, {"x": 1})
    except ValueError as error:
        print(error, end="; ")
print(ast.literal_eval("{'a': [1, -2.5, (None, True)], b'k': {3}}"))
for bad in ("f()", "1 + x", "[" * 3, "a b"):
    try:
        ast.literal_eval(bad)
    except (ValueError, SyntaxError) as error:
        print(type(error).__name__, end=" ")
print()

built = ast.Module([ast.Assign([ast.Name("made", ast.Store())], ast.List([ast.Constant(n) for n in range(3)], ast.Load()))], type_ignores=[])
namespace = {}
exec(compile(ast.fix_missing_locations(built), "built", "exec"), namespace)
scopes = symtable.symtable("def f(a):\n    global g\n    b = a\n    def h(): return b\n    return h", "s", "exec")
table = next(scope for scope in scopes.get_children() if scope.get_name() == "f")
inner_scope = next(scope for scope in table.get_children() if scope.get_name() == "h")
print(namespace["made"], sorted(table.get_parameters()), sorted(table.get_frees() + table.get_globals()), table.lookup("b").is_local(), inner_scope.get_frees())
tokens = tokenize.generate_tokens(io.StringIO("x = 0x1F + 'a'  # note\n").readline)
print([(tokenize.tok_name[t.type], t.string) for t in tokens if t.string.strip()])
code = compile("a = 1\nb = a + len('xyz')", "c", "exec")
module = types.ModuleType("fresh", "docs")
exec(code, module.__dict__)
print(code.co_names, code.co_filename, module.b, module.__name__, module.__doc__, keyword.iskeyword("match"), keyword.issoftkeyword("match"), keyword.iskeyword("async"))
copied = types.FunctionType(outer.__code__, {}, "copied", None, (types.CellType(100),))
print(copied(1), types.SimpleNamespace(a=1, b=[2]), types.MappingProxyType({"k": 1})["k"], types.new_class("New", (Dog,), {}, lambda ns: ns.update(x=5)).x, types.MethodType(lambda s, v: (s, v), "self")("v"))
