"""Runs a function elsewhere."""

import ray

assert ray.get(ray.put(1)) == 1
