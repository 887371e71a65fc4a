"""Graph algorithms over plain dicts: Dijkstra, A*, BFS, DFS, topological order, spanning trees, flows, components, PageRank."""
import heapq
import math
from collections import defaultdict, deque
from itertools import permutations

ROADS = [("A", "B", 7), ("A", "C", 9), ("A", "F", 14), ("B", "C", 10), ("B", "D", 15), ("C", "D", 11), ("C", "F", 2), ("D", "E", 6), ("E", "F", 9), ("G", "H", 1)]


class Graph:
    def __init__(self, edges, directed=False):
        self.edges, self.next = list(edges), defaultdict(dict)
        for a, b, w in edges:
            self.next[a][b] = w
            if directed:
                self.next.setdefault(b, {})
            else:
                self.next[b][a] = w

    def dijkstra(self, start):
        distance, previous, heap = {start: 0}, {}, [(0, start)]
        while heap:
            d, node = heapq.heappop(heap)
            if d > distance[node]:
                continue
            for other, w in self.next[node].items():
                if d + w < distance.get(other, math.inf):
                    distance[other], previous[other] = d + w, node
                    heapq.heappush(heap, (d + w, other))
        return distance, previous

    def path(self, start, end):
        distance, previous = self.dijkstra(start)
        if end not in distance:
            return None
        route = [end]
        while route[-1] != start:
            route.append(previous[route[-1]])
        return distance[end], "".join(reversed(route))

    def components(self):
        seen, found = set(), []
        for node in sorted(self.next):
            if node not in seen:
                group, queue = [], deque([node])
                seen.add(node)
                while queue:
                    current = queue.popleft()
                    group.append(current)
                    for other in sorted(self.next[current]):
                        if other not in seen:
                            seen.add(other)
                            queue.append(other)
                found.append("".join(group))
        return found

    def kruskal(self):
        parent = {node: node for node in self.next}

        def find(x):
            while parent[x] != x:
                parent[x] = parent[parent[x]]
                x = parent[x]
            return x

        tree = []
        for a, b, w in sorted(self.edges, key=lambda e: (e[2], e)):
            if (ra := find(a)) != (rb := find(b)):
                parent[ra] = rb
                tree.append((a + b, w))
        return tree, sum(w for _, w in tree)

    def floyd(self):
        nodes = sorted(self.next)
        table = {(a, b): 0 if a == b else self.next[a].get(b, math.inf) for a in nodes for b in nodes}
        for k in nodes:
            for a in nodes:
                for b in nodes:
                    table[a, b] = min(table[a, b], table[a, k] + table[k, b])
        return table

    def strongly_connected(self):
        """Tarjan's algorithm."""
        index, low, stack, on, out = {}, {}, [], set(), []

        def visit(v):
            index[v] = low[v] = len(index)
            stack.append(v)
            on.add(v)
            for w in self.next[v]:
                if w not in index:
                    visit(w)
                    low[v] = min(low[v], low[w])
                elif w in on:
                    low[v] = min(low[v], index[w])
            if low[v] == index[v]:
                group = []
                while not group or group[-1] != v:
                    group.append(stack.pop())
                    on.discard(group[-1])
                out.append("".join(sorted(group)))

        for v in sorted(self.next):
            if v not in index:
                visit(v)
        return sorted(out)


roads = Graph(ROADS)
print(roads.dijkstra("A")[0], roads.path("A", "E"), roads.path("A", "G"), roads.components(), roads.kruskal())
table = roads.floyd()
assert all(table["A", node] == d for node, d in roads.dijkstra("A")[0].items())
print({a + b: d for (a, b), d in table.items() if a < b and d != math.inf})
print(Graph([(a, b, 1) for a, b in ("ab", "bc", "ca", "cd", "de", "ed", "ef")], directed=True).strongly_connected())


def a_star(grid):
    cells = {(x, y): c for y, row in enumerate(grid) for x, c in enumerate(row)}
    start, goal = (next(p for p, c in cells.items() if c == k) for k in "SG")
    heap, best, came = [(0, 0, start)], {start: 0}, {}
    while heap:
        _, cost, at = heapq.heappop(heap)
        if at == goal:
            break
        for step in ((at[0] + dx, at[1] + dy) for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1))):
            c = cells.get(step, "#")
            if c != "#" and (new := cost + (5 if c == "~" else 1)) < best.get(step, math.inf):
                best[step], came[step] = new, at
                heapq.heappush(heap, (new + abs(step[0] - goal[0]) + abs(step[1] - goal[1]), new, step))
    path, at = set(), came[goal]
    while at != start:
        path.add(at)
        at = came[at]
    return best[goal], ["".join("+" if (x, y) in path else c for x, c in enumerate(row)) for y, row in enumerate(grid)]


cost, drawn = a_star(["S..~~...", ".#.~#.#.", ".#.~#.#.", "...~..#G"])
print(cost, *drawn, sep="\n")


def max_flow(edges, source, sink):
    """Edmonds-Karp."""
    residual = defaultdict(lambda: defaultdict(int))
    for a, b, c in edges:
        residual[a][b] += c
    total = 0
    while True:
        parent, queue = {source: None}, deque([source])
        while queue and sink not in parent:
            node = queue.popleft()
            for other, c in list(residual[node].items()):
                if c > 0 and other not in parent:
                    parent[other] = node
                    queue.append(other)
        if sink not in parent:
            return total, "".join(sorted(parent))
        path, node = [], sink
        while parent[node] is not None:
            path.append((parent[node], node))
            node = parent[node]
        push = min(residual[a][b] for a, b in path)
        for a, b in path:
            residual[a][b] -= push
            residual[b][a] += push
        total += push


def page_rank(links, damping=0.85, rounds=60):
    rank = {page: 1 / len(links) for page in links}
    for _ in range(rounds):
        rank = {page: (1 - damping) / len(links) + damping * math.fsum(rank[p] / len(out) for p, out in links.items() if page in out) for page in links}
    return {page: round(value, 8) for page, value in rank.items()}


def bellman_ford(edges, start):
    nodes = {n for e in edges for n in e[:2]}
    distance = dict.fromkeys(sorted(nodes), math.inf) | {start: 0}
    for _ in range(len(nodes) - 1):
        for a, b, w in edges:
            distance[b] = min(distance[b], distance[a] + w)
    return "negative cycle" if any(distance[a] + w < distance[b] for a, b, w in edges) else distance


def salesman(points):
    first, *rest = sorted(points)
    tours = ((sum(math.dist(points[a], points[b]) for a, b in zip((first, *p), (*p, first))), "".join((first, *p))) for p in permutations(rest) if p[0] < p[-1])
    return min((round(length, 9), tour) for length, tour in tours)


print(max_flow([("s", "a", 10), ("s", "b", 5), ("a", "b", 15), ("a", "t", 5), ("b", "t", 10)], "s", "t"), page_rank({"home": ["about", "blog"], "about": ["home"], "blog": ["home", "about"], "lonely": ["blog"]}))
print(bellman_ford([("a", "b", 4), ("a", "c", 2), ("c", "b", -1), ("b", "d", 3)], "a"), bellman_ford([("a", "b", 1), ("b", "a", -2)], "a"))
print(salesman({"a": (0, 0), "b": (3, 0), "c": (3, 4), "d": (0, 4), "e": (1, 2), "f": (2, 2)}))
