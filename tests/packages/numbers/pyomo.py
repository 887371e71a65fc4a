"""Writes a model of optimization as a file for solvers."""

from pyomo.environ import ConcreteModel, Constraint, NonNegativeReals, Objective, Var, maximize

model = ConcreteModel()
model.x = Var(domain=NonNegativeReals)
model.value = Objective(expr=3 * model.x, sense=maximize)
model.limit = Constraint(expr=2 * model.x <= 8)
model.write("model.lp")
assert "+3 x" in open("model.lp").read()
