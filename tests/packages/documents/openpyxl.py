"""Writes a sheet of Excel with a formula and reads it."""

import io

import openpyxl

book = openpyxl.Workbook()
book.active.append(["a", 1])
book.active["C1"] = "=SUM(B1:B9)"
file = io.BytesIO()
book.save(file)
assert openpyxl.load_workbook(file).active["C1"].value == "=SUM(B1:B9)"
