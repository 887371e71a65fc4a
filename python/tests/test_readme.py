"""The code in README.md and in the guides runs, and prints what its comments say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from node_process import serving

README = Path(__file__).parent.parent / "README.md"
GUIDES = README.parent.parent / "docs/guides"
SECONDS = 50

REPOSITORY = "https://github.com/isolet/isolet/blob/main/"
"""Where links lead. The page is also on an index, which has no other file of the repository."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
"""What a line is said to print. `...` stands for anything."""


def run(code: str, directory: Path) -> list[str]:
    """Runs a program beside `data/a.csv` and `out`. Returns the lines that it prints."""
    (directory / "data").mkdir()
    (directory / "data/a.csv").touch()
    (directory / "out").mkdir()
    (directory / "readme.py").write_text(code)
    ran = subprocess.run(
        [sys.executable, "readme.py"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [line for line in ran.stdout.splitlines() if line]


def run_blocks(blocks: list[tuple[str, str]], directory: Path) -> int:
    """Runs those of Python, one after the other. Returns how many lines they say they print."""
    code = "\n".join(block for language, block in blocks if language == "python")
    expected = PRINTED.findall(code)
    lines = run(code, directory)
    assert len(lines) == len(expected), lines
    for line, said in zip(lines, expected, strict=True):
        pattern = ".*".join(re.escape(part) for part in said.split("..."))
        assert re.fullmatch(pattern, line), f"{said!r} is {line!r}"
    return len(expected)


def test_every_block_runs_and_prints_what_it_says(tmp_path: Path):
    blocks = BLOCK.findall(README.read_text())
    assert {language for language, _ in blocks} == {"python"}
    assert run_blocks(blocks, tmp_path) >= 10
    assert (tmp_path / "out/names.txt").read_text() == "a.csv"


PAGES = [("guides/python.md", 6), ("guides/other-tools.md", 2), ("concepts/determinism.md", 0)]


@pytest.mark.parametrize(("page", "printed"), PAGES)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page: str, printed: int, tmp_path: Path):
    blocks = BLOCK.findall((GUIDES.parent / page).read_text())
    assert run_blocks(blocks, tmp_path) == printed


def test_the_code_of_the_guide_to_a_node_runs_and_prints_what_it_says(tmp_path: Path):
    page = (GUIDES / "node.md").read_text()
    with serving() as address:
        blocks = BLOCK.findall(page.replace("http://127.0.0.1:8080", address))
        assert run_blocks(blocks, tmp_path) == 1


def test_the_code_on_the_first_page_of_the_project_runs(tmp_path: Path):
    blocks = BLOCK.findall((README.parent.parent / "README.md").read_text())
    codes = [block for language, block in blocks if language == "python"]
    assert [run(code, tmp_path) for code in codes] == [["1"]]


def test_every_example_is_listed():
    listed = re.findall(r"^\* \[(\w+\.py)\]: ", README.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in README.parent.glob("examples/*.py"))


def test_each_link_leads_to_a_file_of_the_repository_from_any_page():
    text = re.sub(r"^```.*?^```$", "", README.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert "](" not in text
    targets = dict(re.findall(r"^\[(.+)\]: (\S+)$", text, re.MULTILINE))
    assert len(targets) > 15
    used = re.findall(r"\[([^\]]+)\](?:\[([^\]]+)\])?(?!:? http)", re.sub(r"`[^`]*`", "", text))
    names = {re.sub(r"\s+", " ", label or shown).lower() for shown, label in used}
    assert names == {name.lower() for name in targets}
    for link in targets.values():
        assert link.startswith(REPOSITORY), link
        path, _, heading = link.removeprefix(REPOSITORY).partition("#")
        page = README.parent.parent / path
        assert page.is_file(), link
        headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
        anchors = [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]
        assert not heading or heading in anchors, link


def test_a_table_has_no_empty_line_in_it():
    text = re.sub(r"^```.*?^```$", "", README.read_text(), flags=re.MULTILINE | re.DOTALL)
    tables = [each for each in text.split("\n\n") if each.startswith("|")]
    assert len(tables) == 1
    assert all(re.match(r"\|.*\n\|[-|]+\|\n\|", table) for table in tables)
