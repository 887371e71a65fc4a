"""What was measured, and the tables of it."""

import contextlib
import statistics
import sys
from collections import defaultdict

import processes


class Results:
    """The values by table, row and subject."""

    def __init__(self):
        self.values = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        self.failed = set()

    def add(self, table, row, subject, value):
        self.values[table][row][subject.name].append(value)

    @contextlib.contextmanager
    def attempt(self, row, subject):
        """A block that may fail, which is said on standard error. The others go on."""
        what = f"{subject.title}, {row}"
        print(what, file=sys.stderr)
        try:
            yield
        except (processes.Failed, OSError, ValueError, KeyError) as error:
            self.failed.add((row, subject.name))
            print(f"{what}: failed: {error!r}", file=sys.stderr)

    def has_failed(self, row, subject):
        """Whether it is not to be tried again."""
        return (row, subject.name) in self.failed

    def table(self, title, table, kinds):
        """A table in Markdown: the medians, and how many times isolet's are those of the others."""
        first, *others = kinds
        heads = [title, first.title]
        heads += [head for kind in others for head in (kind.title, "ratio")]
        lines = [f"| {' | '.join(heads)} |", "|-" * len(heads) + "|"]
        for row, values in self.values[table].items():
            kept = {name: some for name, some in values.items() if (row, name) not in self.failed}
            median = {name: statistics.median(some) for name, some in kept.items()}
            ours = median.get(first.name)
            cells = [row, number(ours)]
            for kind in others:
                theirs = median.get(kind.name)
                ratio = ours / theirs if ours is not None and theirs else None
                cells += [number(theirs), number(ratio, digits=2)]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"


def number(value, digits=3):
    if value is None:
        return "-"
    if value >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:#.{digits}g}".rstrip(".")
