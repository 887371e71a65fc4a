"""Tiny machines: an eight-instruction tape machine, a Lisp, a stack compiler, a regex matcher, a state machine, LRU and tries."""
import operator
from collections import OrderedDict
from functools import reduce


def brainf(program, data=""):
    jumps, stack = {}, []
    for i, c in enumerate(program):
        if c == "[":
            stack.append(i)
        elif c == "]":
            jumps[i] = stack.pop()
            jumps[jumps[i]] = i
    tape, at, pc, out, data = [0] * 100, 0, 0, "", iter(data)
    while pc < len(program):
        match program[pc]:
            case ">" | "<" as c:
                at += 1 if c == ">" else -1
            case "+" | "-" as c:
                tape[at] = (tape[at] + (1 if c == "+" else -1)) % 256
            case ".":
                out += chr(tape[at])
            case ",":
                tape[at] = ord(next(data, "\0"))
            case "[" if not tape[at]:
                pc = jumps[pc]
            case "]" if tape[at]:
                pc = jumps[pc]
        pc += 1
    return out


print(brainf("++++++++[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.>---.+++++++..+++."), brainf(",[.,]", "echo"))


def lisp(source):
    tokens = iter(source.replace("(", " ( ").replace(")", " ) ").split())

    def read(token):
        if token != "(":
            return int(token) if token.lstrip("-").isdigit() else token
        items = []
        while (token := next(tokens)) != ")":
            items.append(read(token))
        return items

    def evaluate(x, env):
        match x:
            case int():
                return x
            case str():
                return env[x]
            case ["if", test, yes, no]:
                return evaluate(yes if evaluate(test, env) else no, env)
            case ["define", name, value]:
                env[name] = evaluate(value, env)
            case ["lambda", names, body]:
                return lambda *values: evaluate(body, {**env, **dict(zip(names, values))})
            case [function, *arguments]:
                return evaluate(function, env)(*[evaluate(a, env) for a in arguments])

    env = {"+": lambda *a: sum(a), "*": lambda *a: reduce(operator.mul, a, 1), "-": operator.sub, "<": operator.lt, "list": lambda *a: list(a), "map": lambda f, xs: list(map(f, xs))}
    return [evaluate(read(token), env) for token in tokens][-1]


print(lisp("(define sq (lambda (n) (* n n))) (map sq (list 1 2 (+ 1 2) -4))"), lisp("(if (< 1 2) (- 10 3) 0)"))


def compile_rpn(expression):
    """Shunting-yard into reverse Polish notation."""
    power, out, stack = {"+": 1, "-": 1, "*": 2, "/": 2, "^": 3}, [], []
    for token in expression.split():
        if token in power:
            while stack and stack[-1] != "(" and (power[stack[-1]] > power[token] or power[stack[-1]] == power[token] and token != "^"):
                out.append(stack.pop())
            stack.append(token)
        elif token == "(":
            stack.append(token)
        elif token == ")":
            while stack[-1] != "(":
                out.append(stack.pop())
            stack.pop()
        else:
            out.append(int(token))
    return out + stack[::-1]


def evaluate_rpn(code):
    stack = []
    for token in code:
        if isinstance(token, int):
            stack.append(token)
        else:
            b, a = stack.pop(), stack.pop()
            stack.append({"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "^": pow}[token](a, b))
    (result,) = stack
    return result


def matches(pattern, text):
    """Literals, '.', '*', '?' and anchors by recursion."""

    def here(p, t):
        if not p:
            return True
        if p == "$":
            return not t
        first = bool(t) and p[0] in (t[0], ".")
        match p[1:2]:
            case "*":
                return here(p[2:], t) or first and here(p, t[1:])
            case "?":
                return here(p[2:], t) or first and here(p[2:], t[1:])
        return first and here(p[1:], t[1:])

    return here(pattern[1:], text) if pattern.startswith("^") else any(here(pattern, text[i:]) for i in range(len(text) + 1))


for expression in ("3 + 4 * 2", "( 1 + 2 ) * ( 3 - 4 )", "2 ^ 3 ^ 2 - 100 / 7"):
    code = compile_rpn(expression)
    print(*code, "=", evaluate_rpn(code))
print([matches(p, t) for p, t in (("^a.c$", "abc"), ("b*d", "abbbd"), ("^colou?r$", "color"), ("^x*$", ""), ("a.*z", "a-to-y"), ("c$", "abcd"))])


class LRU:
    def __init__(self, size):
        self.size, self.items, self.stats = size, OrderedDict(), {"hit": 0, "miss": 0, "evict": 0}

    def get(self, key, load):
        if key in self.items:
            self.stats["hit"] += 1
            self.items.move_to_end(key)
        else:
            self.stats["miss"] += 1
            self.items[key] = load(key)
            if len(self.items) > self.size:
                self.stats["evict"] += 1
                self.items.popitem(last=False)
        return self.items[key]


class Trie:
    def __init__(self, words=()):
        self.root = {}
        for word in words:
            node = self.root
            for c in word:
                node = node.setdefault(c, {})
            node["$"] = word

    def complete(self, prefix):
        node = self.root
        for c in prefix:
            node = node.get(c, {})
        found, stack = [], [node]
        while stack:
            for key, child in stack.pop().items():
                found.append(child) if key == "$" else stack.append(child)
        return sorted(found)


class Turnstile:
    table = {("locked", "coin"): "open", ("open", "push"): "locked", ("open", "coin"): "open", ("broken", "fix"): "locked"}

    def __init__(self):
        self.state, self.trace = "locked", []

    def __call__(self, event):
        self.state = "broken" if event == "kick" else self.table.get((self.state, event), self.state)
        self.trace.append(self.state[0])
        return self


cache = LRU(2)
print([cache.get(k, str.upper) for k in "abacab"], cache.stats, list(cache.items))
print(Trie(["car", "card", "care", "cat", "dog"]).complete("car"), Trie().complete("x"), Trie(["a"]).complete(""))
turnstile = Turnstile()
for event in "push coin coin push kick coin fix coin".split():
    turnstile(event)
print("".join(turnstile.trace), turnstile.state)


def turing(rules, tape, state="start"):
    """A Turing machine over a sparse tape."""
    cells, at, steps = dict(enumerate(tape)), 0, 0
    while state != "halt":
        symbol, move, state = rules[state, cells.get(at, "_")]
        cells[at] = symbol
        at, steps = at + move, steps + 1
    return "".join(cells[i] for i in sorted(cells)).strip("_"), steps


increment = {("start", "0"): ("0", 1, "start"), ("start", "1"): ("1", 1, "start"), ("start", "_"): ("_", -1, "carry"), ("carry", "1"): ("0", -1, "carry"), ("carry", "0"): ("1", 0, "halt"), ("carry", "_"): ("1", 0, "halt")}
print([turing(increment, format(n, "b")) for n in (0, 5, 7)])
