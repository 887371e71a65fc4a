"""Runs a graph with a condition."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


graph = StateGraph(State)
graph.add_node("add", lambda state: {"n": state["n"] + 1})
graph.add_edge(START, "add")
graph.add_conditional_edges("add", lambda state: END if state["n"] > 2 else "add")
assert graph.compile().invoke({"n": 0}) == {"n": 3}
