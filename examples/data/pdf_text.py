"""Text of a PDF.

Extracts the text of a report, turns its tables into numbers, and adds them up.
"""

import re

import matplotlib.pyplot as plt
import pandas as pd
from pypdf import PdfReader

reader = PdfReader("report.pdf")
print(f"{reader.metadata.title}: {len(reader.pages)} pages")
text = "\n".join(page.extract_text(extraction_mode="layout") for page in reader.pages)
print("contact:", *set(re.findall(r"[\w.]+@[\w.]+\w", text)))

rows, stations = {}, []
for line in text.splitlines():
    cells = re.split(r"\s{2,}", line.strip())
    if cells[0] == "Month":
        stations = cells[1:]
    elif stations and len(cells) == len(stations) + 1:
        rows[cells[0]] = [
            float("nan") if cell == "–" else float(cell.replace(",", "")) for cell in cells[1:]
        ]
df = pd.DataFrame.from_dict(rows, orient="index", columns=stations)
print()
print(df.to_string(na_rep="–"))
print()
print(pd.DataFrame({"total": df.sum(), "best month": df.idxmax(), "missing": df.isna().sum()}))

df.index = [month[:3] for month in df.index]
ax = df.plot.bar(figsize=(7, 3.4), width=0.8, rot=0, title=reader.metadata.title)
ax.set_ylabel("kWh")
plt.tight_layout()
plt.show()
