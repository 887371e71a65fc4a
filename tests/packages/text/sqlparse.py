"""Splits and formats SQL."""

import sqlparse

assert sqlparse.split("select 1; select ';'") == ["select 1;", "select ';'"]
shown = sqlparse.format("select a from b where c=1", reindent=True, keyword_case="upper")
assert shown == "SELECT a\nFROM b\nWHERE c=1"
