"""Solves a linear program by its own solver, which is a program."""

import pulp

problem = pulp.LpProblem("diet", pulp.LpMaximize)
x, y = pulp.LpVariable("x", 0, 4), pulp.LpVariable("y", 0)
problem += x + 2 * y
problem += x + y <= 5
problem.solve(pulp.PULP_CBC_CMD(msg=False))
assert pulp.value(problem.objective) == 10
