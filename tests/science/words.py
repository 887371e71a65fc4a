"""Text, symbols and graphs."""

import networkx as nx
import regex
import sympy

assert regex.findall(r"\p{Lu}\w+", "Ärger und Über") == ["Ärger", "Über"]
assert regex.search(r"(?:cats|dogs){e<=1}", "cts")

x = sympy.symbols("x")
assert sympy.integrate(sympy.exp(-x**2), (x, -sympy.oo, sympy.oo)) == sympy.sqrt(sympy.pi)
assert sympy.solve(x**2 - 2) == [-sympy.sqrt(2), sympy.sqrt(2)]
assert sympy.latex(sympy.Rational(1, 2)) == r"\frac{1}{2}"

graph = nx.karate_club_graph()
assert nx.shortest_path_length(graph, 0, 33) == 2
assert abs(sum(nx.pagerank(graph).values()) - 1) < 1e-6

str(sympy.diff(sympy.sin(x) * x, x))
