"""heapq, bisect, graphlib and queue: priority queues, merging, running medians, sorted inserts, topological orders, LIFO."""
import bisect
import graphlib
import heapq
import itertools
import queue
from dataclasses import dataclass, field

heap = [9, 4, 7, 1, -2, 6, 5]
heapq.heapify(heap)
assert all(heap[(i - 1) // 2] <= heap[i] for i in range(1, len(heap)))
heapq.heappush(heap, 0)
print([heapq.heappop(heap) for _ in range(4)], heapq.heappushpop(heap, 3), heapq.heapreplace(heap, 100), heap[0], sorted(heap))
print(heapq.nlargest(3, [5, 1, 8, 3]), heapq.nsmallest(2, ["bb", "a", "ccc"], key=len), list(heapq.merge([1, 4, 9], [2, 4], [0, 10])), list(heapq.merge("zxa", "yb", reverse=True)))
print(list(heapq.merge(["a", "ccc"], ["bb", "dddd"], key=len)), heapq.nlargest(0, [1]), heapq.nlargest(10, [2, 1]))


@dataclass(order=True)
class Job:
    priority: int
    order: int
    name: str = field(compare=False)


class Scheduler:
    """A priority queue with stable order, updates and lazy deletion."""

    def __init__(self):
        self.heap, self.entries, self.counter = [], {}, itertools.count()

    def add(self, name, priority):
        if name in self.entries:
            self.entries.pop(name).name = None
        job = self.entries[name] = Job(priority, next(self.counter), name)
        heapq.heappush(self.heap, job)

    def pop(self):
        while self.heap:
            job = heapq.heappop(self.heap)
            if job.name is not None:
                del self.entries[job.name]
                return job.name
        raise KeyError("empty")


scheduler = Scheduler()
for name, priority in (("write", 5), ("test", 3), ("plan", 1), ("rest", 3), ("write", 0)):
    scheduler.add(name, priority)
print([scheduler.pop() for _ in range(4)])
try:
    scheduler.pop()
except KeyError as error:
    print("KeyError", error)


class RunningMedian:
    def __init__(self):
        self.low, self.high = [], []

    def add(self, value):
        heapq.heappush(self.high, -heapq.heappushpop(self.low, -value))
        if len(self.high) > len(self.low):
            heapq.heappush(self.low, -heapq.heappop(self.high))
        return -self.low[0] if len(self.low) > len(self.high) else (self.high[0] - self.low[0]) / 2


median = RunningMedian()
print([median.add(v) for v in (5, 15, 1, 3, 8, 7, 9, 10)])


def huffman(text):
    counts = {c: text.count(c) for c in sorted(set(text))}
    heap = [(n, i, c) for i, (c, n) in enumerate(counts.items())]
    heapq.heapify(heap)
    for i in itertools.count(len(heap)):
        if len(heap) == 1:
            break
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (a[0] + b[0], i, (a[2], b[2])))
    codes = {}

    def walk(node, prefix):
        if isinstance(node, tuple):
            walk(node[0], prefix + "0")
            walk(node[1], prefix + "1")
        else:
            codes[node] = prefix or "0"

    walk(heap[0][2], "")
    return codes


codes = huffman("abracadabra")
encoded = "".join(codes[c] for c in "abracadabra")
print(codes, encoded, len(encoded))

scores = [33, 60, 60, 60, 77, 90]
print(bisect.bisect_left(scores, 60), bisect.bisect_right(scores, 60), bisect.bisect(scores, 0), bisect.bisect(scores, 99), ["FDCBA"[bisect.bisect([60, 70, 80, 90], s)] for s in scores])
bisect.insort(scores, 70)
bisect.insort_left(scores, 60)
people = [("ann", 20), ("bob", 30), ("cy", 40)]
bisect.insort(people, ("dee", 35), key=lambda p: p[1])
print(scores, [p[0] for p in people], bisect.bisect_left(people, 30, key=lambda p: p[1]), bisect.bisect_left([1, 2, 3, 2], 2, 2, 3))


def longest_increasing(values):
    tails, links, positions = [], {}, []
    for i, value in enumerate(values):
        at = bisect.bisect_left(tails, value)
        if at == len(tails):
            tails.append(value)
            positions.append(i)
        else:
            tails[at], positions[at] = value, i
        links[i] = positions[at - 1] if at else None
    i, result = positions[-1], []
    while i is not None:
        result.append(values[i])
        i = links[i]
    return result[::-1]


print(longest_increasing([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9]))

graph = {"test": {"build"}, "build": {"fetch", "configure"}, "configure": {"fetch"}, "release": {"test", "docs"}, "docs": {"configure"}}
order = list(graphlib.TopologicalSorter(graph).static_order())
assert all(order.index(before) < order.index(task) for task, needs in graph.items() for before in needs)
sorter = graphlib.TopologicalSorter(graph)
sorter.add("announce", "release")
sorter.prepare()
levels = []
while sorter.is_active():
    ready = sorted(sorter.get_ready())
    levels.append(ready)
    sorter.done(*ready)
print(levels)
try:
    list(graphlib.TopologicalSorter({"a": ["b"], "b": ["c"], "c": ["a"]}).static_order())
except graphlib.CycleError as error:
    cycle = error.args[1]
    print("cycle of", len(cycle) - 1, sorted(set(cycle)), cycle[0] == cycle[-1])

for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
    q = kind(maxsize=3)
    for item in (2, 3, 1):
        q.put_nowait(item)
    try:
        q.put_nowait(4)
    except queue.Full:
        print(kind.__name__, [q.get_nowait() for _ in range(3)], q.empty(), end=" ")
    try:
        q.get_nowait()
    except queue.Empty as error:
        print(type(error).__name__)
simple = queue.SimpleQueue()
simple.put("only")
print(simple.get(), simple.qsize())
