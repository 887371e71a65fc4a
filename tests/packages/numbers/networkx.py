"""Finds a shortest path and the communities of a graph."""

import networkx as nx

graph = nx.Graph()
graph.add_weighted_edges_from([("a", "b", 1), ("b", "c", 1), ("a", "c", 5)])
assert nx.shortest_path(graph, "a", "c", weight="weight") == ["a", "b", "c"]
assert len(nx.community.greedy_modularity_communities(nx.karate_club_graph())) == 3
