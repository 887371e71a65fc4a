"""Checks the columns of a table and lists what fails."""
# With: pandera[pandas]

import pandas as pd
import pandera.pandas as pa

schema = pa.DataFrameSchema({"age": pa.Column(int, pa.Check.in_range(0, 120))})
assert len(schema.validate(pd.DataFrame({"age": [1, 99]}))) == 2
try:
    schema.validate(pd.DataFrame({"age": [1, 200, -1]}), lazy=True)
    raise SystemExit("it accepts any age")
except pa.errors.SchemaErrors as error:
    assert error.failure_cases.failure_case.tolist() == [200, -1]
