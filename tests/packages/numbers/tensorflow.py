"""Differentiates a function."""

import tensorflow as tf

x = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = x**2
assert tape.gradient(y, x).numpy() == 6
