"""Writes a sheet of Excel with a chart."""

import io
import zipfile

import xlsxwriter

file = io.BytesIO()
with xlsxwriter.Workbook(file) as book:
    sheet = book.add_worksheet("s")
    sheet.write_column("A1", [1, 2, 3])
    chart = book.add_chart({"type": "line"})
    chart.add_series({"values": "=s!$A$1:$A$3"})
    sheet.insert_chart("C1", chart)
assert "xl/charts/chart1.xml" in zipfile.ZipFile(file).namelist()
