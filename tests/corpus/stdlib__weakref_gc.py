"""weakref and gc: references, callbacks, finalizers, weak containers, cycles, resurrection, reference-counted life cycles."""
import contextlib
import gc
import sys
import weakref

log = []


class Thing:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Thing({self.name})"

    def __del__(self):
        log.append(f"del {self.name}")

    def method(self):
        return f"method of {self.name}"


def flush(label):
    print(f"{label}: {log}")
    log.clear()


thing = Thing("a")
reference = weakref.ref(thing, lambda r: log.append(f"callback {r() is None}"))
print(reference(), reference() is thing, weakref.getweakrefcount(thing), weakref.ref(thing) is weakref.ref(thing), reference == weakref.ref(thing))
alias = thing
del thing
print("still there:", reference())
del alias
gc.collect()
print("gone:", reference())
flush("after the last name")

thing = Thing("proxied")
proxy = weakref.proxy(thing)
print(proxy.name, proxy.method(), type(proxy).__name__)
del thing
gc.collect()
try:
    proxy.name
except ReferenceError as error:
    print(type(error).__name__)
flush("proxy")
try:
    weakref.ref(5)
except TypeError as error:
    print("no weak reference to int:", type(error).__name__)

cache = weakref.WeakValueDictionary()
keep = [Thing(n) for n in "xyz"]
for item in keep:
    cache[item.name] = item
del item
print(sorted(cache), cache.get("y"), "q" in cache, len(cache))
keep.pop(1)
gc.collect()
print(sorted(cache), cache.get("y", "absent"))
flush("values")


class Key:
    def __init__(self, name):
        self.name = name


extra = weakref.WeakKeyDictionary()
key, other = Key("k"), Key("o")
extra[key], extra[other] = "data for k", "data for o"
members = weakref.WeakSet([key, other])
print(len(extra), extra[key], len(members), key in members)
del other
gc.collect()
print(len(extra), [k.name for k in extra], len(members))

bound = Thing("bound")
dead, alive = weakref.ref(bound.method), weakref.WeakMethod(bound.method)
gc.collect()
print("a bound method dies at once:", dead() is None, "| WeakMethod:", alive()())
del bound
gc.collect()
print(alive() is None)
flush("methods")

resource = Thing("resource")
finalizer = weakref.finalize(resource, log.append, "finalized")
finalizer.atexit = False
print(finalizer.alive, finalizer.peek()[1].__name__)
del resource
gc.collect()
print(finalizer.alive, finalizer())
flush("finalize")
early = Thing("early")
finalizer = weakref.finalize(early, lambda *a: log.append(a) or "result", 1, 2)
print(finalizer(), finalizer(), finalizer.detach())
del early
gc.collect()
flush("called early")


class Parent:
    def __init__(self, name):
        self.name, self.children = name, []

    def add(self, child):
        child.parent = weakref.ref(self)
        self.children.append(child)
        return self


parent = Parent("p").add(Thing("c1")).add(Thing("c2"))
children = parent.children
print([c.parent().name for c in children])
del parent
gc.collect()
print([c.parent() for c in children])
children.clear()
flush("no cycle needed")

gc.collect()
gc.disable()
left, right = Thing("left"), Thing("right")
left.other, right.other = right, left
watch = weakref.ref(left)
del left, right
print("a cycle survives:", watch() is not None, gc.isenabled())
collected = gc.collect()
gc.enable()
print("until collected:", watch() is None, collected >= 2, sorted(log))
log.clear()


class Phoenix:
    saved = []

    def __del__(self):
        log.append("saved")
        Phoenix.saved.append(self)


bird = Phoenix()
del bird
gc.collect()
print(len(Phoenix.saved), type(Phoenix.saved[0]).__name__)
Phoenix.saved.clear()
gc.collect()
flush("__del__ runs once")

target = []
referrers = [target, {"t": target}]
print(gc.is_tracked(target), gc.is_tracked(5), gc.is_tracked("s"), any(r is referrers[1] for r in gc.get_referrers(target)), target in gc.get_referents(referrers))
before = sys.getrefcount(target)
more = [target] * 5
print("references added:", sys.getrefcount(target) - before, sys.getsizeof([]) < sys.getsizeof([0] * 100), sys.intern("a b") is sys.intern("a" + " b"))


class Observable:
    """Listeners do not keep their owners alive."""

    def __init__(self):
        self.listeners = []

    def listen(self, method):
        self.listeners.append(weakref.WeakMethod(method, self.listeners.remove))

    def fire(self, event):
        return [listener()(event) for listener in list(self.listeners)]


class Listener:
    def __init__(self, name):
        self.name = name

    def on_event(self, event):
        return f"{self.name} got {event}"


source, first, second = Observable(), Listener("first"), Listener("second")
source.listen(first.on_event)
source.listen(second.on_event)
print(source.fire("one"))
del first
gc.collect()
print(source.fire("two"), len(source.listeners))
with contextlib.closing(type("C", (), {"close": lambda self: log.append("closed")})()):
    log.append("open")
flush("end")
