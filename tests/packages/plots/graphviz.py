"""Makes the DOT source of a graph, which a program would draw."""

import graphviz

graph = graphviz.Digraph(comment="steps")
graph.edge("a", "b", label="next")
assert "a -> b [label=next]" in graph.source
