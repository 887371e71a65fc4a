"""Makes a run without sending it."""

from langsmith.run_trees import RunTree

run = RunTree(name="a", run_type="chain", inputs={"x": 1})
run.end(outputs={"y": 2})
assert run.outputs == {"y": 2}
