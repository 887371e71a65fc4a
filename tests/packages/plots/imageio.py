"""Writes an animation and reads its frames."""

import imageio.v3 as iio
import numpy as np

frames = np.zeros((3, 8, 8, 3), np.uint8)
frames[1] = 200
gif = iio.imwrite("<bytes>", frames, extension=".gif", duration=100)
assert iio.imread(gif, extension=".gif", index=None)[1].mean() > 150
