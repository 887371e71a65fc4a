"""collections: Counter, defaultdict, OrderedDict, deque, ChainMap, namedtuple, UserDict, and dict and set behaviour."""
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple

text = "it was the best of times it was the worst of times"
words = Counter(text.split())
print(words.most_common(3), words["absent"], words.total(), sum(words.values()), len(words))
letters = Counter("mississippi")
print(letters, letters - Counter("miss"), letters & Counter("sip"), letters | Counter("zzmm"), +Counter(a=2, b=-1), -Counter(a=2, b=-1))
letters.update("ssss")
letters.subtract({"i": 5})
print(letters.most_common(), sorted(letters.elements()), letters >= Counter("ms"), Counter(a=1) == Counter(a=1, b=0))
del letters["m"]
print(letters.pop("p"), dict(letters), Counter([1, 1.0, True]), Counter({"x": 3}).most_common()[:-2:-1])

index = defaultdict(list)
for position, word in enumerate(text.split()):
    index[word].append(position)
print(dict(index), "never" in index, index.get("never"), index["touched"], "touched" in index)
tree = lambda: defaultdict(tree)  # noqa: E731
root = tree()
root["a"]["b"]["c"] = 1
root["a"]["d"] = 2


def plain(node):
    return {k: plain(v) for k, v in node.items()} if isinstance(node, defaultdict) else node


print(plain(root), defaultdict(int, x=1), defaultdict(lambda: "?", {1: 2})[9])


class KeyDefault(defaultdict):
    def __missing__(self, key):
        self[key] = value = key * 2
        return value


print(KeyDefault()["ab"], {k: KeyDefault()[k] for k in (1, 2.5)})

ordered = OrderedDict(zip("abcd", range(4)))
ordered.move_to_end("a")
ordered.move_to_end("d", last=False)
print(list(ordered), ordered.popitem(last=False), ordered.popitem(), ordered == OrderedDict(c=2, b=1), ordered == {"c": 2, "b": 1}, list(reversed(ordered)))

d = deque(range(5), maxlen=5)
d.append(5)
d.appendleft("left")
print(d, d.maxlen, d[0], d[-1], d.index(3), d.count(2))
d.rotate(2)
print(list(d), d.pop(), d.popleft(), list(d))
d.extendleft("xy")
d.insert(1, "in") if len(d) < 5 else d.remove("x")
d.reverse()
print(d, 2 in d, d.copy() == d, deque("abc") < deque("abd"), deque([1]) + deque([2]), deque("ab") * 2)
growing = deque([1, 2])
for action in (lambda: deque().pop(), lambda: deque([1, 2], 2).insert(0, 0), lambda: deque("a").remove("z"), lambda: [growing.append(x) for x in growing]):
    try:
        action()
    except (IndexError, ValueError, RuntimeError) as error:
        print(type(error).__name__, end=" ")
print()

defaults, environment, arguments = {"colour": "red", "user": "guest"}, {"user": "admin"}, {}
settings = ChainMap(arguments, environment, defaults)
print(settings["user"], settings["colour"], dict(settings), len(settings), settings.maps.index(defaults))
settings["colour"] = "blue"
child = settings.new_child({"user": "root"})
print(arguments, defaults["colour"], child["user"], child.parents["user"], list(child))
try:
    del settings["user"]
except KeyError as error:
    print("only the first map is written:", type(error).__name__)

Point = namedtuple("Point", "x y z", defaults=(0,))
p = Point(1, y=2)
print(p, p.x + p[1], p._asdict(), p._replace(z=9), Point._fields, Point._field_defaults, Point._make("abc"), p == (1, 2, 0), hash(p) == hash((1, 2, 0)))
x, *rest = p
print(x, rest, sorted([Point(2, 1), Point(1, 9)]), namedtuple("N", "a class a", rename=True)._fields, Point.__doc__)
for bad in (lambda: namedtuple("B", "1x"), lambda: Point(1), lambda: setattr(p, "x", 5), lambda: namedtuple("C", "a a")):
    try:
        bad()
    except (ValueError, TypeError, AttributeError) as error:
        print(type(error).__name__, end=" ")
print()


class Upper(UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key.upper(), value)


class Bounded(UserList):
    def append(self, item):
        super().append(min(item, 10))


print(Upper(a=1, b=2) | {"c": 3}, Upper({"x": 1}).data, UserString("abc").upper() + "d", Bounded([1]).__add__([2]))
bounded = Bounded()
bounded.append(50)
print(bounded, bounded * 2, type(bounded[:]).__name__)

d = {"b": 1, "a": 2}
d["c"], d["b"] = 3, 4
print(d, list(d.items()), d | {"a": 0, "z": 9}, dict.fromkeys("xyx", 0), dict([("k", "v")], extra=1), d.get("q", "none"), dict(sorted(d.items(), key=lambda kv: kv[1])))
for bad in (lambda: [d.pop(k) for k in d], lambda: {**d, []: 1}, lambda: dict([1]), lambda: d["absent"], lambda: dict.fromkeys([[]])):
    try:
        bad()
    except (RuntimeError, TypeError, KeyError, ValueError) as error:
        print(type(error).__name__, end=" ")
print()
keys, view = d.keys(), d.items()
d["late"] = 0
print(len(keys), ("late", 0) in view, keys - {"a"} == {"b", "c", "late"} or sorted(keys), sorted(keys ^ {"late", "new"}))
s, t = {1, 2, 3}, frozenset([3, 4])
print(s | t, s & t, s - t, s ^ t, type(t | s).__name__, s <= {1, 2, 3, 4}, s.isdisjoint(t), s.issuperset([1]), {frozenset([1]): "nested"}[frozenset({1})], t in {t})
s.update([9], (8,))
s.discard(77)
s.intersection_update(range(5))
print(sorted(s), s.pop() in {1, 2, 3}, len(s), {1, True, 1.0}, {*"aab"} == set("ab"), sorted({3, 1, 2}, reverse=True), set() == frozenset())
