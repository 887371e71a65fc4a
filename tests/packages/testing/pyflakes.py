"""Finds names that are not used."""

import io

from pyflakes.api import check
from pyflakes.reporter import Reporter

out = io.StringIO()
assert check("import os\n", "a.py", Reporter(out, out)) == 1
assert "'os' imported but unused" in out.getvalue()
