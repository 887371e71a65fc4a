"""Runs a program with a model of its own."""
# With: litellm==1.83.7
# Without `==`, pip would download every version to find that none can be loaded.

import dspy
from dspy.utils import DummyLM

dspy.configure(lm=DummyLM([{"answer": "4"}]))
assert dspy.Predict("question -> answer")(question="2 + 2").answer == "4"
