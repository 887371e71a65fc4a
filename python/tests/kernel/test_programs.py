"""Programs that run notebooks, with isolet as their kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import papermill
import pytest

GUIDE = Path(__file__).parents[3] / "docs/guides/jupyter.md"


def notebook(*cells: str, **metadata: object) -> nbformat.NotebookNode:
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    made.metadata.update({"kernelspec": {"name": "isolet", "display_name": "x"}, **metadata})
    return made


def test_nbclient_runs_a_notebook() -> None:
    made = notebook("x = 6", "print('out')\nx * 7", "display({'text/html': '<b>a</b>'}, raw=True)")
    nbclient.NotebookClient(made, timeout=60).execute()
    _, second, third = (cell.outputs for cell in made.cells)
    assert second[0].text == "out\n"
    assert second[1].data["text/plain"] == "42"
    assert third[0].data["text/html"] == "<b>a</b>"


def test_nbclient_stops_where_a_cell_fails() -> None:
    made = notebook("1/0", "x = 1")
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        nbclient.NotebookClient(made, timeout=60).execute()
    assert made.cells[1].execution_count is None


def test_nbclient_gives_up_on_a_cell_that_takes_too_long() -> None:
    made = notebook("while True: pass")
    with pytest.raises(nbclient.exceptions.CellTimeoutError):
        nbclient.NotebookClient(made, timeout=2).execute()


def test_papermill_sets_parameters(tmp_path: Path) -> None:
    made = notebook("n = 1", "n * 2", language_info={"name": "python"})
    made.cells[0].metadata["tags"] = ["parameters"]
    source, target = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
    nbformat.write(made, source)
    papermill.execute_notebook(
        str(source), str(target), parameters={"n": 21}, kernel_name="isolet", progress_bar=False
    )
    done = nbformat.read(target, as_version=4)
    assert done.cells[-1].outputs[0].data["text/plain"] == "42"


def test_the_programs_of_the_guide_run(tmp_path: Path) -> None:
    guide = GUIDE.read_text()
    made = notebook("n = 1", "n * 2", language_info={"name": "python"})
    made.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(made, tmp_path / "in.ipynb")
    (program,) = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=100)
    (words,) = re.findall(r"^papermill (.*)$", guide, re.MULTILINE)
    command = [sys.executable, "-m", "papermill", *words.split()]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=100, capture_output=True)
    done = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert done.cells[-1].outputs[0].data["text/plain"] == "42"
