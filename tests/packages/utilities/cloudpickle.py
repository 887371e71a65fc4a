"""Saves a class of the script and makes an object of it again."""

import pickle

import cloudpickle


class Point:
    def __init__(self, x):
        self.x = x


assert pickle.loads(cloudpickle.dumps(Point))(3).x == 3
