"""Makes an invoice as PDF or HTML from JSON."""

import argparse
import datetime
import html
import json
import string
import sys
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path

TEMPLATE = Path(__file__).resolve().parent.parent / "assets" / "invoice.html"
CENT = Decimal("0.01")


def fail(message):
    sys.exit(f"error: {message}")


def cents(value):
    return value.quantize(CENT, ROUND_HALF_UP)


def needed(data, key, where=""):
    if data.get(key) in (None, "", []):
        fail(f"{where}{key} is missing")
    return data[key]


def number(data, key, where, default=None):
    value = data.get(key, default)
    if value is None:
        fail(f"{where}{key} is missing")
    try:
        return Decimal(str(value))
    except InvalidOperation:
        fail(f"{where}{key} is not a number: {value!r}")


def party(data, key):
    found = needed(data, key)
    return [needed(found, "name", f"{key}."), *found.get("lines", [])]


class Invoice:
    """What an invoice says, computed from its data."""

    def __init__(self, data):
        self.number = str(needed(data, "number"))
        try:
            self.date = datetime.date.fromisoformat(str(needed(data, "date")))
        except ValueError:
            fail(f"date is not YYYY-MM-DD: {data['date']!r}")
        self.due = self.date + datetime.timedelta(days=int(data.get("days", 14)))
        self.currency = data.get("currency", "EUR")
        self.seller, self.customer = party(data, "seller"), party(data, "customer")
        self.note = data.get("note", "")
        self.items, by_rate = [], {}
        for index, item in enumerate(needed(data, "items"), 1):
            where = f"item {index}: "
            text = needed(item, "text", where)
            quantity = number(item, "quantity", where, 1)
            price = number(item, "price", where)
            rate = number(item, "tax", where, 0)
            amount = cents(quantity * price)
            self.items.append((text, quantity, price, rate, amount))
            by_rate[rate] = by_rate.get(rate, Decimal(0)) + amount
        self.net = sum(by_rate.values())
        self.taxes = {
            rate: cents(net * rate / 100) for rate, net in sorted(by_rate.items()) if rate
        }
        self.total = self.net + sum(self.taxes.values())

    def rows(self):
        for text, quantity, price, rate, amount in self.items:
            yield text, f"{quantity:f}", f"{price:,.2f}", f"{rate:f} %", f"{amount:,.2f}"

    def sums(self):
        yield "Net", f"{self.net:,.2f}"
        for rate, tax in self.taxes.items():
            yield f"Tax {rate:f} %", f"{tax:,.2f}"
        yield f"Total {self.currency}", f"{self.total:,.2f}"


def write_html(invoice, path):
    rows = []
    for text, *numbers in invoice.rows():
        cells = "".join(f'<td class="n">{cell}</td>' for cell in numbers)
        rows.append(f"<tr><td>{html.escape(text)}</td>{cells}</tr>")
    sums = list(invoice.sums())
    for index, (name, amount) in enumerate(sums):
        kind = "total" if index == len(sums) - 1 else "sum"
        rows.append(
            f'<tr class="{kind}"><td colspan="4">{html.escape(name)}</td>'
            f'<td class="n">{amount}</td></tr>'
        )
    template = string.Template(TEMPLATE.read_text(encoding="utf-8"))
    text = template.substitute(
        number=html.escape(invoice.number),
        date=invoice.date,
        due=invoice.due,
        customer="<br>".join(map(html.escape, invoice.customer)),
        seller="<br>".join(map(html.escape, invoice.seller)),
        rows="\n".join(rows),
        note=html.escape(invoice.note),
    )
    Path(path).write_text(text, encoding="utf-8")


def write_pdf(invoice, path):
    try:
        from reportlab.lib import colors
        from reportlab.lib.pagesizes import A4
        from reportlab.lib.styles import getSampleStyleSheet
        from reportlab.lib.units import mm
        from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table
    except ImportError:
        fail("PDF needs reportlab; write to a file that ends with .html instead")
    styles = getSampleStyleSheet()

    def paragraph(text, style="Normal"):
        return Paragraph(html.escape(text), styles[style])

    def address(lines):
        return Paragraph("<br/>".join(map(html.escape, lines)), styles["Normal"])

    head = ["Item", "Quantity", "Price", "Tax", "Amount"]
    rows = [[paragraph(text), *numbers] for text, *numbers in invoice.rows()]
    sums = [[name, "", "", "", amount] for name, amount in invoice.sums()]
    table = Table([head, *rows, *sums], [82 * mm, 22 * mm, 24 * mm, 18 * mm, 28 * mm], repeatRows=1)
    table.setStyle(
        [
            ("ALIGN", (1, 0), (-1, -1), "RIGHT"),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ("FONTNAME", (0, 0), (-1, 0), "Helvetica-Bold"),
            ("LINEBELOW", (0, 0), (-1, len(rows)), 0.3, colors.grey),
            ("FONTNAME", (0, -1), (-1, -1), "Helvetica-Bold"),
            ("LINEABOVE", (0, -1), (-1, -1), 0.8, colors.black),
        ]
    )
    story = [
        Table([[address(invoice.customer), address(invoice.seller)]], [110 * mm, 64 * mm]),
        Spacer(1, 14 * mm),
        paragraph(f"Invoice {invoice.number}", "Title"),
        paragraph(f"Date: {invoice.date}. Due: {invoice.due}."),
        Spacer(1, 6 * mm),
        table,
        Spacer(1, 8 * mm),
        paragraph(invoice.note),
    ]
    document = SimpleDocTemplate(
        str(path), pagesize=A4, title=f"Invoice {invoice.number}", author=invoice.seller[0]
    )
    document.build(story)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("output", help="a file that ends with .pdf or .html")
    args = parser.parse_args()
    writers = {".pdf": write_pdf, ".html": write_html}
    write = writers.get(Path(args.output).suffix.lower())
    if write is None:
        fail("the output has to end with .pdf or .html")
    try:
        data = json.loads(Path(args.data).read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"cannot read {args.data}: {error.strerror}")
    except ValueError as error:
        fail(f"{args.data} is not JSON: {error}")
    invoice = Invoice(data)
    write(invoice, args.output)
    for name, amount in invoice.sums():
        print(f"{name}: {amount}")
    print(f"{args.output}: {len(invoice.items)} items, due {invoice.due}")


if __name__ == "__main__":
    main()
