"""Which of the expressions of expected.txt have another value or type than on a desktop."""

import io
import warnings

import numpy as np
import pandas as pd
from scipy import sparse, stats
from sklearn import metrics

NAMES = {"np": np, "pd": pd, "io": io, "sparse": sparse, "stats": stats, "metrics": metrics}
NAMES["seeded"] = lambda seed=0: np.random.RandomState(seed)


def value(found):
    """The value as text, with its type."""
    found = np.asarray(found)
    return f"{found.dtype} {found.tolist()}"


def differences(lines):
    """The expressions that differ, each with what it should be and what it is."""
    warnings.simplefilter("ignore")
    for line in lines:
        expression, _, expected = line.rstrip("\n").rpartition(" -> ")
        try:
            found = value(eval(expression, NAMES))
        except Exception as error:
            found = repr(error)
        if found != expected:
            yield f"{expression}: expected {expected}, is {found}"
