"""Reads a graph, adds an edge and writes it as DOT."""

import pydot

(graph,) = pydot.graph_from_dot_data("digraph g { a -> b; }")
graph.add_edge(pydot.Edge("b", "c", color="red"))
assert [edge.get_destination() for edge in graph.get_edges()] == ["b", "c"]
assert "b -> c [color=red]" in graph.to_string()
