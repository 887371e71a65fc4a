"""Asks a question, with the answer from a pipe."""

from prompt_toolkit import PromptSession
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

with create_pipe_input() as pipe:
    pipe.send_text("Ann\n")
    assert PromptSession(input=pipe, output=DummyOutput()).prompt("Name? ") == "Ann"
