"""Runs a program with a model of its own."""

import dspy
from dspy.utils import DummyLM

dspy.configure(lm=DummyLM([{"answer": "4"}]))
assert dspy.Predict("question -> answer")(question="2 + 2").answer == "4"
