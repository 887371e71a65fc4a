"""Excel with two sheets.

Reads both sheets of a workbook, combines them, and writes a workbook with a third one, a pivot
table.
"""

import matplotlib.pyplot as plt
import pandas as pd
from openpyxl import load_workbook

sheets = pd.read_excel("orders.xlsx", sheet_name=None)
for name, sheet in sheets.items():
    first, last = sheet["Date"].min(), sheet["Date"].max()
    print(f"{name}: {len(sheet)} orders, {first:%d %b} to {last:%d %b}")

orders = pd.concat(sheets, names=["Region"]).reset_index(level="Region")
orders["Amount"] = orders["Quantity"] * orders["Unit price"]
pivot = orders.pivot_table(
    index="Category",
    columns="Region",
    values="Amount",
    aggfunc="sum",
    margins=True,
    margins_name="Total",
)
print()
print(pivot.to_string(float_format="{:,.2f}".format))

with pd.ExcelWriter("orders_summary.xlsx", engine="openpyxl") as writer:
    for name, sheet in sheets.items():
        sheet.to_excel(writer, sheet_name=name, index=False)
    pivot.to_excel(writer, sheet_name="Summary")
    for column, width in zip("ABCD", (14, 12, 12, 12)):
        writer.sheets["Summary"].column_dimensions[column].width = width
    for row in writer.sheets["Summary"]["B2:D5"]:
        for cell in row:
            cell.number_format = "#,##0.00"

workbook = load_workbook("orders_summary.xlsx", read_only=True)
summary = workbook["Summary"]
print()
print("sheets:", workbook.sheetnames)
print("total in the file:", [cell.value for cell in list(summary.rows)[-1]])

monthly = orders.groupby([orders["Date"].dt.month_name().str[:3], "Region"], sort=False)["Amount"]
monthly = monthly.sum().unstack().reindex(["Jan", "Feb", "Mar", "Apr", "May", "Jun"])
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
pivot.drop("Total")[["North", "South"]].plot.barh(ax=left, title="Amount by category")
left.set_ylabel("")
monthly.plot(ax=right, marker="o", title="Amount by month", ylim=0, legend=False)
right.set_xlabel("")
fig.tight_layout()
plt.show()
