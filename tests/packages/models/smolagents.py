"""Runs an agent, whose model is a function, with a tool."""
# With: httpcore2

from smolagents import ChatMessage, CodeAgent, Model, tool


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: The number.
    """
    return 2 * number


class Fake(Model):
    def generate(self, messages, **options):
        return ChatMessage("assistant", "<code>\nfinal_answer(double(21))\n</code>")


agent = CodeAgent([double], Fake(), verbosity_level=0)
assert agent.run("Double 21") == 42
