"""A tiny language: tokenizer, Pratt parser and evaluator with closures, scopes and clear errors."""
import operator
import re
from dataclasses import dataclass

TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|(\"[^\"]*\")|([A-Za-z_]\w*)|(==|!=|<=|>=|&&|\|\||[-+*/%<>=!(){},;]))")
POWER = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}
APPLY = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}


class ScriptError(Exception): ...


class Return(Exception):
    def __init__(self, value):
        self.value = value


def tokenize(source):
    tokens, at, source = [], 0, source.rstrip()
    while at < len(source):
        if not (m := TOKEN.match(source, at)):
            raise ScriptError(f"unexpected {source[at:].strip()[:1]!r} at {at}")
        number, text, name, symbol = m.groups()
        tokens.append(("num", float(number) if "." in number else int(number)) if number else ("str", text[1:-1]) if text else ("name", name) if name else ("op", symbol))
        at = m.end()
    return tokens + [("end", None)]


class Parser:
    def __init__(self, source):
        self.tokens, self.at = tokenize(source), 0

    def peek(self, *values):
        return self.tokens[self.at][1] in values

    def take(self, value=None):
        token = self.tokens[self.at]
        if value is not None and token[1] != value:
            raise ScriptError(f"expected {value!r}, found {token[1]!r}")
        self.at += 1
        return token

    def program(self, end=None):
        body = []
        while not self.peek(end):
            body.append(self.statement())
        self.take()
        return ("block", body)

    def statement(self):
        if self.peek("{"):
            self.take()
            return self.program("}")
        if self.peek("let", "return", "print"):
            word = self.take()[1]
            name = self.take()[1] if word == "let" else None
            if name:
                self.take("=")
            value = self.expression()
            self.take(";")
            return (word, name, value)
        if self.peek("if", "while"):
            word = self.take()[1]
            self.take("(")
            test = self.expression()
            self.take(")")
            then, other = self.statement(), None
            if word == "if" and self.peek("else") and self.take():
                other = self.statement()
            return (word, test, then, other)
        value = self.expression()
        self.take(";")
        return ("do", value)

    def expression(self, power=0):
        kind, value = self.take()
        match kind, value:
            case ("num" | "str"), _:
                left = ("const", value)
            case "name", "fn":
                self.take("(")
                names = []
                while not self.peek(")"):
                    names.append(self.take()[1])
                    if self.peek(","):
                        self.take()
                self.take(")")
                left = ("fn", names, self.statement())
            case "name", _ if self.peek("="):
                self.take()
                return ("set", value, self.expression())
            case "name", _:
                left = ("name", value)
            case "op", "(":
                left = self.expression()
                self.take(")")
            case "op", ("-" | "!"):
                left = ("unary", value, self.expression(7))
            case _:
                raise ScriptError(f"unexpected {value!r}")
        while True:
            if self.peek("("):
                self.take()
                arguments = []
                while not self.peek(")"):
                    arguments.append(self.expression())
                    if self.peek(","):
                        self.take()
                self.take(")")
                left = ("call", left, arguments)
            elif (op := self.tokens[self.at][1]) in POWER and self.tokens[self.at][0] == "op" and POWER[op] > power:
                self.take()
                left = ("binary", op, left, self.expression(POWER[op]))
            else:
                return left


@dataclass
class Scope:
    names: dict
    parent: "Scope | None" = None

    def find(self, name):
        scope = self
        while scope and name not in scope.names:
            scope = scope.parent
        if not scope:
            raise ScriptError(f"unknown name {name}")
        return scope.names


def run(node, scope, out):
    match node:
        case ("block", body):
            inner = Scope({}, scope)
            for statement in body:
                run(statement, inner, out)
        case ("let", name, value):
            scope.names[name] = run(value, scope, out)
        case ("set", name, value):
            scope.find(name)[name] = result = run(value, scope, out)
            return result
        case ("print", _, value):
            out.append(str(run(value, scope, out)))
        case ("return", _, value):
            raise Return(run(value, scope, out))
        case ("if", test, then, other):
            if run(test, scope, out):
                run(then, scope, out)
            elif other:
                run(other, scope, out)
        case ("while", test, body, _):
            while run(test, scope, out):
                run(body, scope, out)
        case ("const", value):
            return value
        case ("name", name):
            return scope.find(name)[name]
        case ("do", value):
            return run(value, scope, out)
        case ("unary", op, value):
            value = run(value, scope, out)
            return -value if op == "-" else not value
        case ("binary", "&&", a, b):
            return run(a, scope, out) and run(b, scope, out)
        case ("binary", "||", a, b):
            return run(a, scope, out) or run(b, scope, out)
        case ("binary", op, a, b):
            return APPLY[op](run(a, scope, out), run(b, scope, out))
        case ("fn", names, body):
            return lambda *values: invoke(names, body, values, scope, out)
        case ("call", function, arguments):
            return run(function, scope, out)(*[run(a, scope, out) for a in arguments])


def invoke(names, body, values, scope, out):
    if len(names) != len(values):
        raise ScriptError(f"expected {len(names)} arguments, got {len(values)}")
    try:
        run(body, Scope(dict(zip(names, values)), scope), out)
    except Return as result:
        return result.value


def execute(source):
    out = []
    try:
        run(Parser(source).program(), Scope({"len": len}), out)
    except ScriptError as error:
        out.append(f"error: {error}")
    return out


print(execute('let fib = fn(n) { if (n < 2) return n; return fib(n - 1) + fib(n - 2); }; print fib(14); print 1 + 2 * 3 - -4 % 3; print "a" + "b" == "ab" && !(2 >= 3);'))
print(execute("let counter = fn() { let n = 0; return fn() { n = n + 1; return n; }; }; let a = counter(); let b = counter(); a(); a(); print a() * 10 + b(); print (fn(x) return x * x;)(1.5);"))
print(execute('let i = 0; let s = ""; while (i < 5) { if (i % 2 == 0) s = s + "e"; else s = s + "o"; i = i + 1; } print s; print len(s); { let i = 99; } print i;'))
for broken in ("print x;", "let = 3;", "print 1 +;", "print (1;", "@", "let f = fn(a) { return a; }; f(1, 2);", "while (1) {"):
    print(execute(broken), end=" ")
print()
