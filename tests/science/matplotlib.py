"""Plots of most kinds, saved in every format, and text in formulas."""

import io

import matplotlib.pyplot as plt
import numpy as np

figure, ((a, b), (c, d)) = plt.subplots(2, 2, figsize=(8, 6))
x = np.linspace(0, 10, 200)
a.plot(x, np.sin(x), label=r"$\sin(x)$")
a.set_title(r"$\sum_{i=0}^{n} \frac{x^i}{i!}$")
a.legend()
b.bar(["p", "q"], [3, 4])
c.imshow(np.random.default_rng(1).random((8, 8)), cmap="viridis")
d.hist(np.random.default_rng(2).normal(size=500), bins=20)
figure.suptitle("four")
figure.tight_layout()
sizes = {}
for kind in ("png", "svg", "pdf", "jpg"):
    file = io.BytesIO()
    figure.savefig(file, format=kind)
    sizes[kind] = file.getvalue()[:5]
assert sizes["png"][:4] == b"\x89PNG" and sizes["svg"] == b"<?xml" and sizes["pdf"] == b"%PDF-"
plt.close(figure)

figure = plt.figure()
axes = figure.add_subplot(projection="3d")
axes.plot_surface(*np.meshgrid(x[:20], x[:20]), np.ones((20, 20)))
figure.canvas.draw()
assert np.asarray(figure.canvas.buffer_rgba()).shape[2] == 4
plt.close(figure)

"drawn"
