"""Imports what computes vectors of texts."""

from sentence_transformers import util

assert util.cos_sim([[1.0, 0.0]], [[0.0, 1.0]]).item() == 0
