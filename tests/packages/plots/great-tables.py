"""Formats a table of pandas as HTML."""
# With: pandas, great-tables<0.22

import pandas as pd
from great_tables import GT

table = GT(pd.DataFrame({"city": ["Oslo"], "cost": [1234.5]})).tab_header("Costs")
html = table.fmt_currency("cost", currency="EUR").as_raw_html()
assert "Costs" in html and "&#8364;1,234.50" in html
