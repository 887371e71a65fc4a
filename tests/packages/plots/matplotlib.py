"""Draws a figure with two axes and saves it as PNG and SVG."""

import io

import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2)
left.plot([1, 2, 3], [1, 4, 9], label="$x^2$")
left.legend()
right.bar(["a", "b"], [3, 4])
for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
    file = io.BytesIO()
    figure.savefig(file, format=kind)
    assert file.getvalue().startswith(start)
