"""Draws a line with letters."""

import plotext as plt

plt.plot([1, 4, 9, 16])
plt.title("Squares")
plt.plotsize(40, 12)
assert "Squares" in plt.build()
