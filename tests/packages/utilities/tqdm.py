"""Shows the progress of a loop."""

import io

from tqdm import tqdm

file = io.StringIO()
assert sum(tqdm(range(100), file=file)) == 4950
assert "100%" in file.getvalue() and "100/100" in file.getvalue()
