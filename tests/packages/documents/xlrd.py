"""Reads a sheet of old Excel, by pandas too."""
# With: pandas, xlwt

import datetime

import pandas as pd
import xlrd
import xlwt

book = xlwt.Workbook()
sheet = book.add_sheet("x")
sheet.write(0, 0, "day")
sheet.write(1, 0, datetime.date(2026, 1, 2), xlwt.easyxf(num_format_str="YYYY-MM-DD"))
book.save("a.xls")
sheet = xlrd.open_workbook("a.xls")["x"]
assert xlrd.xldate_as_datetime(sheet.cell_value(1, 0), 0) == datetime.datetime(2026, 1, 2)
assert pd.read_excel("a.xls").day[0] == pd.Timestamp("2026-01-02")
