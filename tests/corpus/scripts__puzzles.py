"""Recursive algorithms: sudoku, n-queens, knapsack, knight's tour, maze, word break, game of life, permutations, minimax."""
from functools import cache
from itertools import combinations, product


def sudoku(text):
    """Constraint propagation with backtracking over the cell with the fewest choices."""
    rows, columns, boxes = ([set("123456789") for _ in range(9)] for _ in range(3))
    grid = [c if c in "123456789" else "." for c in text if c in "123456789.0"]
    empty = []
    for at, c in enumerate(grid):
        r, k = divmod(at, 9)
        if c == ".":
            empty.append(at)
        else:
            for group in (rows[r], columns[k], boxes[r // 3 * 3 + k // 3]):
                group.remove(c)
    guesses = 0

    def solve():
        nonlocal guesses
        if not empty:
            return True
        best = min(empty, key=lambda at: len(rows[at // 9] & columns[at % 9] & boxes[at // 27 * 3 + at % 9 // 3]))
        r, k, b = best // 9, best % 9, best // 27 * 3 + best % 9 // 3
        empty.remove(best)
        for c in sorted(rows[r] & columns[k] & boxes[b]):
            guesses += 1
            grid[best] = c
            for group in (rows[r], columns[k], boxes[b]):
                group.remove(c)
            if solve():
                return True
            for group in (rows[r], columns[k], boxes[b]):
                group.add(c)
        grid[best] = "."
        empty.append(best)
        return False

    return ("\n".join("".join(grid[i : i + 9]) for i in range(0, 81, 9)) if solve() else "no solution"), guesses


PUZZLE = "53..7.... 6..195... .98....6. 8...6...3 4..8.3..1 7...2...6 .6....28. ...419..5 ....8..79"
solved, guesses = sudoku(PUZZLE)
print(solved, guesses, sep="\n")
print(sudoku("12345678." + "........9" + "." * 63)[0])


def queens(n):
    def place(row, columns, down, up):
        if row == n:
            yield []
            return
        for c in range(n):
            if not (columns >> c | down >> (row + c) | up >> (row - c + n)) & 1:
                for rest in place(row + 1, columns | 1 << c, down | 1 << (row + c), up | 1 << (row - c + n)):
                    yield [c, *rest]

    return place(0, 0, 0, 0)


print([sum(1 for _ in queens(n)) for n in range(1, 8)], next(queens(8)))
print("\n".join("".join("Q" if c == q else "." for c in range(6)) for q in next(queens(6))))


def knapsack(items, capacity):
    @cache
    def best(index, room):
        if index == len(items):
            return 0, ()
        skip = best(index + 1, room)
        name, weight, value = items[index]
        if weight > room:
            return skip
        worth, chosen = best(index + 1, room - weight)
        return max(skip, (worth + value, (name, *chosen)))

    return best(0, capacity)


def knights_tour(size):
    moves = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]
    board = {(0, 0): 0}

    def around(at):
        return [(at[0] + dx, at[1] + dy) for dx, dy in moves if 0 <= at[0] + dx < size and 0 <= at[1] + dy < size and (at[0] + dx, at[1] + dy) not in board]

    at = (0, 0)
    for step in range(1, size * size):
        at = min(around(at), key=lambda p: (len(around(p)), p))
        board[at] = step
    return ["".join(f"{board[x, y]:3}" for x in range(size)) for y in range(size)]


def maze(text):
    cells = {(x, y): c for y, line in enumerate(text.split()) for x, c in enumerate(line)}
    start, end = (next(p for p, c in cells.items() if c == k) for k in "SE")
    paths, frontier = {start: None}, [start]
    for x, y in frontier:
        for step in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if cells.get(step, "#") != "#" and step not in paths:
                paths[step] = (x, y)
                frontier.append(step)
    path, at = [], end
    while at:
        path.append(at)
        at = paths[at]
    return len(path) - 1, ["".join("*" if (x, y) in path[1:-1] else c for x, c in enumerate(line)) for y, line in enumerate(text.split())]


print(knapsack([("gold", 5, 60), ("silver", 4, 40), ("pearl", 1, 20), ("statue", 6, 65), ("map", 2, 15)], 11))
print("\n".join(knights_tour(6)))
length, drawn = maze("S.#..... .#...#.# ...#.#.. ##.#..#. ...##.#E")
print(length, *drawn, sep="\n")


@cache
def sentences(text):
    dictionary = {"cat", "cats", "and", "sand", "dog"}
    if not text:
        return [""]
    return [f"{text[:n]} {rest}".strip() for n in range(1, len(text) + 1) if text[:n] in dictionary for rest in sentences(text[n:])]


def life(cells, generations):
    for _ in range(generations):
        counts = {}
        for x, y in cells:
            for dx, dy in product((-1, 0, 1), repeat=2):
                if dx or dy:
                    counts[x + dx, y + dy] = counts.get((x + dx, y + dy), 0) + 1
        cells = {c for c, n in counts.items() if n == 3 or n == 2 and c in cells}
    return cells


LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


@cache
def minimax(board, player):
    for a, b, c in LINES:
        if board[a] == board[b] == board[c] != ".":
            return (1 if board[a] == "X" else -1), None
    if "." not in board:
        return 0, None
    outcomes = [(minimax(board[:i] + player + board[i + 1 :], "O" if player == "X" else "X")[0], i) for i, c in enumerate(board) if c == "."]
    return max(outcomes, key=lambda o: (o[0], -o[1])) if player == "X" else min(outcomes)


glider = {(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)}
print(sentences("catsanddog"), life(glider, 4) == {(x + 1, y + 1) for x, y in glider}, sorted(life({(0, 0), (1, 0), (2, 0)}, 1)))
print(minimax("XX.OO....", "X"), minimax("X...O...X", "O"), minimax("XO.X.....", "O"))


@cache
def partitions(n, largest):
    return 1 if n == 0 else sum(partitions(n - k, k) for k in range(1, min(n, largest) + 1))


@cache
def matrix_chain(sizes):
    if len(sizes) == 2:
        return 0
    return min(matrix_chain(sizes[: k + 1]) + matrix_chain(sizes[k:]) + sizes[0] * sizes[k] * sizes[-1] for k in range(1, len(sizes) - 1))


def balanced(n, open_=0):
    if n == 0 and open_ == 0:
        return [""]
    return (["(" + rest for rest in balanced(n - 1, open_ + 1)] if n else []) + ([")" + rest for rest in balanced(n, open_ - 1)] if open_ else [])


def subset_sum(numbers, target):
    return next((c for size in range(1, len(numbers) + 1) for c in combinations(numbers, size) if sum(c) == target), None)


def flood(grid):
    grid, sizes = [list(row) for row in grid], []
    for y, x in product(range(len(grid)), range(len(grid[0]))):
        stack, size = [(y, x)], 0
        while stack:
            r, c = stack.pop()
            if 0 <= r < len(grid) and 0 <= c < len(grid[0]) and grid[r][c] == "#":
                grid[r][c], size = " ", size + 1
                stack += [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]
        if size:
            sizes.append(size)
    return sizes


print(partitions(60, 60), matrix_chain((30, 35, 15, 5, 10, 20, 25)), balanced(3), subset_sum([3, 34, 4, 12, 5, 2], 9), flood(["##..#", ".#..#", "#...#", "##.#."]))
