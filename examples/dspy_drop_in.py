"""DSPy's own, unmodified PythonInterpreter, running on isolet instead of Deno.

Needs `pip install dspy` (without the package `deno`, which DSPy would prefer to the one on PATH) and
isolet, built or installed. Run it with `python examples/dspy_drop_in.py`.
"""

import os
import pathlib
import shutil
import tempfile

import dspy
from dspy.primitives.code_interpreter import CodeExecutionError, FinalOutput

built = pathlib.Path(__file__).parent.parent / "target/fast-build/isolet"
isolet = os.environ.get("ISOLET_BIN") or (str(built) if built.exists() else shutil.which("isolet"))
assert isolet, "there is no isolet: `cargo xtask setup` makes one"


def search(query: str, limit: int = 2) -> list:
    """A tool: it runs here, on the host, and is called by the sandboxed code."""
    return [f"{query} #{n}" for n in range(limit)]


async def shout(text: str) -> str:
    return text.upper()


def show(interpreter: dspy.PythonInterpreter) -> None:
    with interpreter as run:
        print(run("import sys\nprint(sys.version.split()[0], sys.platform)").strip())

        # Variables, and state that stays.
        assert run("total = sum(numbers)", variables={"numbers": [1, 2, 39]}) == ""
        assert run("total") == 42

        # Tools are plain functions in the sandbox, from any depth.
        assert run("sorted(search('cats', limit=3), reverse=True)[0]") == "cats #2"
        assert run("[shout(word) for word in ('a', 'b')]") == ["A", "B"]

        # What the code raises is an exception here, and the session goes on.
        try:
            run("search()")
        except CodeExecutionError as error:
            print(error)
        else:
            raise AssertionError("a missing argument was accepted")

        final = run("SUBMIT(answer=shout('done'), score=0.9)")
        assert final == FinalOutput({"answer": "DONE", "score": 0.9}), final
        print(final)


settings = {
    "tools": {"search": search, "shout": shout},
    "output_fields": [{"name": "answer", "type": "str"}, {"name": "score", "type": "float"}],
}

print("== PythonInterpreter(deno_command=[isolet, 'dspy'])")
show(dspy.PythonInterpreter(deno_command=[isolet, "dspy"], **settings))

print("== PythonInterpreter(), with isolet on PATH as `deno`")
with tempfile.TemporaryDirectory() as directory:
    os.symlink(os.path.abspath(isolet), os.path.join(directory, "deno"))
    os.environ["PATH"] = directory + os.pathsep + os.environ["PATH"]
    show(dspy.PythonInterpreter(**settings))
