"""What was measured, as a table in Markdown, and what could not be."""

import datetime
import math
import os
import platform
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Column(Protocol):
    """A subject, as the table needs it."""

    name: str
    title: str
    about: dict


class Results:
    """Medians by benchmark and subject, and reasons where there is none."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.rows: dict[str, dict[str, float]] = {}
        self.reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        self.missing: dict[str, str] = {}

    def add(self, row: str, subject: str, seconds: Sequence[float]) -> None:
        self.rows.setdefault(row, {})[subject] = statistics.median(seconds)

    def fail(self, rows: Sequence[str], subject: str, reason: str) -> None:
        for row in rows:
            self.rows.setdefault(row, {})
        self.reasons[subject][reason].extend(rows)

    def ratios(self, subject: str, other: str) -> list[float]:
        """How many times the one takes the time of the other, in all that both run."""
        both = [row for row in self.rows.values() if row.get(subject) and row.get(other)]
        return [row[subject] / row[other] for row in both]

    def markdown(self, columns: Sequence[Column], left_out: dict[str, list[str]]) -> str:
        names = [column.name for column in columns]
        others = [name for name in names if name != self.base]
        heads = ["benchmark, ms", *(heading(column) for column in columns)]
        lines = [cells(heads), "|-" * len(heads) + "|"]
        for row, found in self.rows.items():
            lines.append(cells([f"`{row}`", *(self.cell(found, name) for name in names)]))
        common = [row for row in self.rows.values() if all(row.get(name) for name in names)]
        means = [geometric_mean([row[name] / row[self.base] for row in common]) for name in names]
        title = f"geometric mean of the {len(common)} that all run"
        lines.append(cells([title, *(f"×{mean:.2f}" for mean in means)]))
        counts = [sum(not row.get(name) for row in self.rows.values()) for name in names]
        lines.append(cells([f"cannot run, of {len(self.rows)}", *map(str, counts)]))
        lines += ["", *(f"* {description(column)}" for column in columns)]
        lines += [f"* {name} is left out: {reason}." for name, reason in self.missing.items()]
        lines += ["", "Geometric means of all benchmarks that both run:", ""]
        pairs = [(name, self.base) for name in others]
        pairs += [(others[0], name) for name in others[1:]]
        lines += [self.comparison(name, other) for name, other in pairs]
        failures = [
            f"* {name}, {listed(rows)}: {reason}"
            for name in names
            for reason, rows in self.reasons[name].items()
        ]
        if failures:
            lines += ["", "`-`:", "", *failures]
        lines += ["", "Left out:", ""]
        lines += [f"* {listed(found)}: {reason}" for reason, found in left_out.items()]
        return "\n".join(lines)

    def cell(self, found: dict[str, float], name: str) -> str:
        if not found.get(name):
            return "-"
        taken = number(found[name] * 1000)
        if name == self.base or not found.get(self.base):
            return taken
        return f"{taken} (×{found[name] / found[self.base]:.2f})"

    def comparison(self, name: str, other: str) -> str:
        ratios = self.ratios(name, other)
        return f"* {name} by {other}: ×{geometric_mean(ratios):.3f} ({len(ratios)} benchmarks)"


def heading(column: Column) -> str:
    return f"{column.name}, Python {column.about['python']}"


def description(column: Column) -> str:
    about = column.about
    tick = number(about["tick"] * 1e6)
    return (
        f"{column.name}: {column.title}, Python {about['python']} on {about['platform']}, smallest "
        f"step of its clock seen: {tick} µs"
    )


def geometric_mean(values: Sequence[float]) -> float:
    return statistics.geometric_mean(values) if values else math.nan


def cells(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def number(value: float, digits: int = 3) -> str:
    if value >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    places = digits - 1 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{places}f}"


def machine(rounds: int, load: float, seconds: float) -> str:
    processor = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    return (
        f"{datetime.date.today()}, {processor}, {os.cpu_count()} cores, {platform.system()}, load "
        f"average {load:.1f} before and {os.getloadavg()[0]:.1f} after. Medians of {rounds} "
        f"rounds, in {seconds / 60:.0f} minutes."
    )
