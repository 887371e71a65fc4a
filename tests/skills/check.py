"""Judges what a skill's script made: `check.py NAME OUTDIR STDOUTFILE`.

NAME is a function here, as in cases.json. It uses the standard library only.
"""

import base64
import csv
import hashlib
import json
import re
import sqlite3
import struct
import sys
import tarfile
import xml.etree.ElementTree as ET
import zipfile
import zlib
from pathlib import Path

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


def same(found, expected, what):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


def has(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in {text[:2000]!r}"


def lacks(text, *parts):
    for part in parts:
        assert part not in text, f"{part!r} is in {text[:2000]!r}"


def table(path, delimiter=","):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


# Word, Excel, PowerPoint.


def parts(path, pattern):
    """Yields the XML of the parts of a package whose names match, in order of their names."""
    with zipfile.ZipFile(path) as package:
        same(package.testzip(), None, "damaged part")
        for name in sorted(package.namelist()):
            if re.fullmatch(pattern, name):
                yield ET.fromstring(package.read(name))


def word_paragraphs(root):
    made = []
    for paragraph in root.iter(f"{WORD}p"):
        pieces = []
        for node in paragraph.iter():
            if node.tag == f"{WORD}t":
                pieces.append(node.text or "")
            elif node.tag in (f"{WORD}br", f"{WORD}cr"):
                pieces.append("\n")
        made.append("".join(pieces))
    return made


def docx_placeholders(out, stdout):
    names = ["client.name", "closing", "company", "date", "number", "total"]
    names += [f"items.{field} (table)" for field in ("hours", "name", "price")]
    same(sorted(stdout.split("\n")[:-1]), sorted(names), "placeholders")


def docx_fill(out, stdout):
    [body] = parts(out / "filled.docx", r"word/document\.xml")
    text = word_paragraphs(body)
    has(text, "Offer for Ada Lovelace")
    has(text, "Dear Ada Lovelace, this is our offer of 3 May 2026.")
    has(text, "Yours,\nÉmile Ünal")
    rows = [
        ["".join(word_paragraphs(cell)) for cell in row.iter(f"{WORD}tc")]
        for row in body.iter(f"{WORD}tr")
    ]
    expected = [
        ["Work", "Hours", "Price"],
        ["Analysis", "12", "1,200.00"],
        ["Drawings <A3>", "5", "450.00"],
        ["Report", "3", "300.00"],
        ["Total", "", "1,950.00"],
    ]
    same(rows, expected, "rows")
    heads = [word_paragraphs(part) for part in parts(out / "filled.docx", r"word/header\d\.xml")]
    same(heads, [["Fernweh & Co"]], "header")
    feet = [word_paragraphs(part) for part in parts(out / "filled.docx", r"word/footer\d\.xml")]
    same(feet, [["Offer A-204"]], "footer")
    bold = [
        "".join(text.text for text in run.iter(f"{WORD}t"))
        for run in body.iter(f"{WORD}r")
        if run.find(f"{WORD}rPr/{WORD}b") is not None
    ]
    lacks("".join(bold), "ent.na")
    has(stdout, "3 rows made")


def xlsx_report(out, stdout):
    path = out / "sales.xlsx"
    [book] = parts(path, r"xl/workbook\.xml")
    same([each.get("name") for each in book.iter(f"{SHEET}sheet")], ["Summary", "Data"], "sheets")
    summary, data = parts(path, r"xl/worksheets/sheet\d\.xml")
    formulas = {
        cell.get("r"): cell.find(f"{SHEET}f").text
        for cell in summary.iter(f"{SHEET}c")
        if cell.find(f"{SHEET}f") is not None
    }
    same(len(formulas), 16, "number of formulas")
    same(formulas["C4"], "SUMIFS(Data!$E$2:$E$10,Data!$B$2:$B$10,A4)", "C4")
    same(formulas["C7"], "SUM(C4:C6)", "C7")
    same(formulas["E6"], "C6/C$7", "E6")
    numbers = {
        cell.get("r"): cell.find(f"{SHEET}v").text
        for cell in data.iter(f"{SHEET}c")
        if cell.get("t", "n") == "n" and cell.find(f"{SHEET}v") is not None
    }
    total = sum(float(numbers[f"E{row}"]) for row in range(2, 11))
    same(round(total, 2), 3353.2, "total of the cells")
    # 2026-01-05 as days since 1899-12-30.
    same(float(numbers["A2"]), 46027, "date")
    same(data.find(f".//{SHEET}pane").get("topLeftCell"), "A2", "frozen rows")
    same(data.find(f"{SHEET}autoFilter").get("ref"), "A1:E10", "filter")
    assert summary.find(f"{SHEET}conditionalFormatting") is not None, "no data bars"
    same(len(list(parts(path, r"xl/charts/chart\d\.xml"))), 1, "charts")
    has(stdout, "9 rows, 3 groups (North, South, West)", "total of amount: 3,353.20")


def slides(path):
    def number(name):
        return int(re.search(r"\d+", name)[0])

    with zipfile.ZipFile(path) as package:
        names = [name for name in package.namelist() if re.match(r"ppt/slides/slide\d", name)]
        return [ET.fromstring(package.read(name)) for name in sorted(names, key=number)]


def slide_paragraphs(root):
    for paragraph in root.iter(f"{DRAWING}p"):
        properties = paragraph.find(f"{DRAWING}pPr")
        level = int(properties.get("lvl", "0")) if properties is not None else 0
        text = "".join(text.text or "" for text in paragraph.iter(f"{DRAWING}t"))
        if text:
            yield level, text


def pptx_build(out, stdout):
    path = out / "review.pptx"
    made = [list(slide_paragraphs(slide)) for slide in slides(path)]
    same(len(made), 4, "slides")
    same(made[0][0], (0, "Sales grew in every region"), "title")
    lines = [
        (0, "The North leads"),
        (0, "774 from chairs alone"),
        (1, "most of it in March"),
        (0, "Desks follow"),
    ]
    same(made[1], lines, "second slide")
    cells = [text for _, text in made[2]]
    has(cells, "Product", "Chair", "1,419.00", "538.20")
    third = slides(path)[2]
    same(len(list(third.iter(f"{DRAWING}tr"))), 4, "rows of the table")
    bold = [
        run.find(f"{DRAWING}t").text
        for run in slides(path)[1].iter(f"{DRAWING}r")
        if run.find(f"{DRAWING}rPr") is not None and run.find(f"{DRAWING}rPr").get("b") == "1"
    ]
    same(bold, ["774"], "bold text")
    notes = [text for part in parts(path, r"ppt/notesSlides/.*\.xml")
             for _, text in slide_paragraphs(part)]
    has(notes, "Thank the team in the north.", "Then show the table.")
    has(stdout, "warning: a bullet of 18 words", "4 slides")


# PDF.


def pdf_texts(path):
    """Returns the texts that each page shows, for files with a stream for each page."""
    raw = path.read_bytes()
    assert raw.startswith(b"%PDF-"), "not a PDF"
    assert raw.rstrip().endswith(b"%%EOF"), "the end is missing"
    objects = dict(re.findall(rb"(?s)(?:^|[\r\n])(\d+) 0 obj\s(.*?)endobj", raw))
    [catalog] = [body for body in objects.values() if re.search(rb"/Type\s*/Catalog\b", body)]
    root = objects[re.search(rb"/Pages\s+(\d+) 0 R", catalog)[1]]
    kids = re.search(rb"(?s)/Kids\s*\[(.*?)\]", root)[1]
    pages = []
    for page in re.findall(rb"(\d+) 0 R", kids):
        content = objects[re.search(rb"/Contents\s*\[?\s*(\d+) 0 R", objects[page])[1]]
        head, body = re.fullmatch(rb"(?s)(.*?)stream\r?\n(.*)endstream\s*", content).groups()
        if b"/ASCII85Decode" in head:
            body = base64.a85decode(body.strip().removesuffix(b"~>"))
        if b"/FlateDecode" in head:
            body = zlib.decompressobj().decompress(body)
        texts = re.findall(rb"\(((?:\\.|[^\\()])*)\)\s*Tj", body)
        plain = [re.sub(rb"\\(.)", rb"\1", text).decode("latin-1") for text in texts]
        pages.append([text for text in plain if text])
    return pages


def pdf_merge(out, stdout):
    pages = pdf_texts(out / "both.pdf")
    titles = [page[0] for page in pages]
    expected = ["Spring report, page 1", "Spring report, page 2"]
    expected += ["Autumn report, page 2", "Autumn report, page 3"]
    same(titles, expected, "pages")
    raw = (out / "both.pdf").read_bytes()
    bookmarks = re.findall(rb"/Title \((\w+)\)", raw)
    same([title for title in bookmarks if title in (b"spring", b"autumn")],
         [b"spring", b"autumn"], "bookmarks")
    has(stdout, "autumn.pdf: 2 of 3 pages")


def pdf_split(out, stdout):
    made = {path.name: pdf_texts(path) for path in (out / "parts").iterdir()}
    same(sorted(made), ["autumn-001.pdf", "autumn-002.pdf"], "files")
    same([len(made[name]) for name in sorted(made)], [2, 1], "pages")
    same(made["autumn-002.pdf"], [["Autumn report, page 3", "Week 38: calm"]], "last page")
    has(stdout, "2 files in")


def pdf_extract(out, stdout):
    found = json.loads((out / "spring.json").read_text(encoding="utf-8"))
    same(found["pages_in_file"], 2, "pages")
    same(found["metadata"]["Title"], "Spring report", "title")
    has(found["pages"][0]["text"], "Spring report, page 1", "Visitors: 1,204", "Rain: 12 days")
    has(found["pages"][1]["text"], "Outlook: mild")
    same([page["page"] for page in found["pages"]], [1, 2], "numbers of pages")
    has(stdout, "2 pages, 15 words")


def invoice_pdf(out, stdout):
    [texts] = pdf_texts(out / "invoice.pdf")
    has("".join(texts), "Invoice 2026-017", "Jane Roe", "Holm & Sons", "Desk lamp <LED>")
    has(texts, "74.70", "93.53", "-5.00", "175.23", "31.96", "0.84", "208.03")
    invoice_sums(stdout)


def invoice_html(out, stdout):
    text = (out / "invoice.html").read_text(encoding="utf-8")
    has(text, "<h1>Invoice 2026-017</h1>", "Due: 2026-03-02", "Desk lamp &lt;LED&gt;")
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.DOTALL)
    amounts = [re.findall(r">([^<>]*)</td>", row)[-1] for row in rows if "<td" in row]
    same(amounts, ["74.70", "93.53", "12.00", "-5.00", "175.23", "0.84", "31.96", "208.03"],
         "amounts")
    lacks(text, "$")
    invoice_sums(stdout)


def invoice_sums(stdout):
    has(stdout, "Net: 175.23", "Tax 7 %: 0.84", "Tax 19 %: 31.96", "Total EUR: 208.03")


# Pictures.


def png(path):
    """Returns the width, height and rows of pixels, each pixel as bytes, of a PNG."""
    raw = path.read_bytes()
    same(raw[:8], b"\x89PNG\r\n\x1a\n", "signature")
    at, data, header, palette = 8, b"", None, b""
    while at < len(raw):
        length, kind = struct.unpack(">I4s", raw[at : at + 8])
        body = raw[at + 8 : at + 8 + length]
        crc = struct.unpack(">I", raw[at + 8 + length : at + 12 + length])[0]
        same(zlib.crc32(kind + body), crc, f"checksum of {kind}")
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", body)
        elif kind == b"PLTE":
            palette = body
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    width, height, depth, colour, _, _, interlaced = header
    assert depth == 8 and not interlaced, f"not read here: {header}"
    size = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    data, before, rows = zlib.decompress(data), bytes(width * size), []
    for row in range(height):
        start = row * (width * size + 1)
        line = bytearray(data[start + 1 : start + 1 + width * size])
        unfilter(data[start], line, before, size)
        before = bytes(line)
        pixels = [before[index : index + size] for index in range(0, len(before), size)]
        if colour == 3:
            pixels = [palette[3 * pixel[0] : 3 * pixel[0] + 3] for pixel in pixels]
        rows.append(pixels)
    return width, height, rows


def unfilter(kind, line, before, size):
    for index, value in enumerate(line):
        left = line[index - size] if index >= size else 0
        up = before[index]
        corner = before[index - size] if index >= size else 0
        if kind == 1:
            value += left
        elif kind == 2:
            value += up
        elif kind == 3:
            value += (left + up) // 2
        elif kind == 4:
            near = sorted((abs(left + up - corner - each), order, each)
                          for order, each in enumerate((left, up, corner)))
            value += near[0][2]
        line[index] = value & 255


def delta(a, b):
    return abs(a - b)


def close(pixel, colour, what):
    assert max(map(delta, pixel, colour)) < 24, f"{what} is {tuple(pixel)}"


def chart_line(out, stdout):
    width, height, rows = png(out / "chart.png")
    same((width, height), (960, 540), "size")
    pixels = [pixel[:3] for row in rows for pixel in row]
    for colour in ("2f5597", "c55a11"):
        count = pixels.count(bytes.fromhex(colour))
        assert count > 300, f"only {count} pixels of the line {colour}"
    white = pixels.count(b"\xff\xff\xff") / len(pixels)
    assert 0.6 < white < 0.98, f"{white:.0%} of the picture is white"
    has(stdout, "Bergen: 6 points from 5.4 to 9.2", "Porto: 5 points from 15.2 to 18.8, 1 empty")


def chart_bars(out, stdout):
    root = ET.fromstring((out / "bars.svg").read_bytes())
    same(root.get("viewBox"), "0 0 576 324", "size")
    bars = [
        path for path in root.iter("{http://www.w3.org/2000/svg}path")
        if "fill: #2f5597" in path.get("style", "") and path.get("clip-path")
    ]
    same(len(bars), 6, "bars")
    has(stdout, "bars.svg: bar")


def image_fill(out, stdout):
    same(sorted(path.name for path in out.iterdir()), ["sea.png", "sign.png", "stripes.png"],
         "files")
    made = {path.stem: png(path) for path in out.iterdir()}
    for name, (width, height, _) in made.items():
        same((width, height), (64, 48), f"size of {name}")
    sea, sign, stripes = (made[name][2] for name in ("sea", "sign", "stripes"))
    # Upright: the sun is at the top right, and it gets brighter to the bottom.
    close(sea[8][50], (245, 197, 66), "the sun")
    close(sea[46][4], (40, 188, 152), "the bottom left of the sea")
    same(sign[2][2][3], 0, "transparency of a corner of the sign")
    close(sign[34][32], (192, 0, 0, 255), "the middle of the sign")
    for colour in ((0, 0, 0), (255, 255, 255), (30, 120, 60)):
        near = [pixel for pixel in stripes[20] if max(map(delta, pixel, colour)) < 24]
        assert len(near) > 8, f"{len(near)} pixels of a stripe are {colour}"
    has(stdout, "sea.png: 320x200 to 64x48 png")


def image_sheet(out, stdout):
    width, height, rows = png(out / "sheet.png")
    same((width, height), (196, 236), "size")
    close(rows[0][0], (255, 255, 255), "the edge")
    close(rows[60][144], (192, 0, 0), "the sign in the second cell")
    dark = [sum(max(pixel[:3]) < 96 for row in rows[94:112] for pixel in row[left : left + 80])
            for left in (12, 104)]
    assert min(dark) > 20, f"dark pixels of the names: {dark}"
    has(stdout, "3 pictures, 2 columns, 2 rows")


# Tables and texts.


def csv_cleaning(out, stdout):
    rows = table(out / "clean.csv")
    expected = [
        ["order_id", "customer", "order_date", "unit_price", "code", "paid"],
        ["1", "Müller", "2026-01-03", "1299.0", "007", "True"],
        ["2", "Núñez", "2026-01-04", "19.9", "012", "False"],
        ["3", "Smith", "2026-01-06", "12.5", "031", "True"],
        ["4", "Okafor", "", "5.0", "040", "False"],
        ["5", "", "2026-01-07", "12.5", "051", "True"],
        ["6", "Roux", "2026-01-09", "9.0", "060", "True"],
    ]
    same(rows, expected, "clean.csv")
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    same(report["encoding"], "Windows-1252", "encoding")
    dropped = [report[key] for key in ("empty_rows", "duplicates", "repeated_keys")]
    same(dropped, [1, 1, 1], "dropped rows")
    bad = [{"line": 6, "column": "order_date", "value": "tomorrow"}]
    same(report["rejected"], bad, "rejected values")
    has((out / "report.md").read_text(encoding="utf-8"), "| unit_price | number | 1 |")
    has(stdout, "9 rows before, 6 after")


def html_to_markdown(out, stdout):
    text = (out / "page.md").read_text(encoding="utf-8")
    has(
        text,
        "# How to keep *bees*\n",
        "Bees need **water**, flowers and a "
        "[wooden hive](https://bees.example/hives?type=wood).  \nStart in spring.\n",
        "- A veil\n- A smoker\n  3. fill it\n  4. light it\n",
        "Honey in kg\n\n| Year | Honey |\n|-|-|\n| 2024 | 12 \\| 13 |\n| 2025 | **15** |\n",
        "> Be calm.\n>\n> Bees notice.\n",
        "```python\ndef hives(n):\n    return n * 2\n```\n",
        "Use `hives(3)`. A snake\\_case name & a 5 < 6.",
        "![A hive](https://bees.example/guide/img/bee%20hive.png)",
    )
    lacks(text, "Shop", "Home", "track", "draft", "Not for readers", "All rights", "color:")
    has(stdout, "2 headings, 1 links, 1 tables, 1 code blocks")


def log_report(out, stdout):
    has(stdout, "requests: 122\n", "server errors: 2 (1.6 %)\n", "suspicious: 2\n")
    hours = [["hour", "requests", "errors"]]
    hours += [["12/Mar/2026:08", "41", "0"], ["12/Mar/2026:09", "41", "2"]]
    same(table(out / "hours.tsv", "\t"), [*hours, ["12/Mar/2026:10", "40", "0"]], "hours")
    statuses = [["status", "requests"], ["200", "88"], ["304", "16"], ["400", "1"]]
    same(table(out / "statuses.tsv", "\t"), [*statuses, ["404", "15"], ["500", "2"]], "statuses")
    suspicious = (out / "suspicious.log").read_text().splitlines()
    same(len(suspicious), 2, "suspicious lines")
    has(suspicious[1], "/../../etc/passwd")
    same((out / "unparsed.log").read_text(), "this line is cut\n", "unparsed.log")
    report = (out / "report.md").read_text()
    has(report, "* 122 requests of 5 addresses, 0.4 MiB\n", "1 lines not understood")
    has(report, "## Status\n\n| requests | status |\n|-|-|\n| 88 | 200 |\n| 16 | 304 |\n")
    has(report, "| 25 | /docs/start |\n| 25 | /img/logo.png |\n", "| 14 | 404 /old-page |\n")


def json_structure(out, stdout):
    rows = [line.split("\t") for line in stdout.splitlines()]
    expected = [
        [".orders", "array", "1"],
        [".orders[]", "object", "3"],
        [".orders[].customer.city", "string", "3"],
        [".orders[].note", "string", "1"],
        [".orders[].tags[]", "string", "2"],
        [".shop", "string", "1"],
    ]
    same([row for row in rows if row in expected], expected, "paths")
    same(len(rows), 11, "number of paths")


def json_table(out, stdout):
    expected = [
        ["id", "who", "total", "note"],
        ["1", "Ada", "30.1", ""],
        ["2", "Grace", "12", ""],
        ["3", "Ada", "7.25", 'say "hi", please'],
    ]
    same(table(out / "orders.csv"), expected, "orders.csv")
    has(stdout, "4 lines of csv")


def json_totals(out, stdout):
    found = json.loads((out / "totals.json").read_text())
    expected = [
        {"customer": "Linus", "count": 2, "total": 10},
        {"customer": "Grace", "count": 1, "total": 8.05},
        {"customer": "Ada", "count": 2, "total": 7.3},
    ]
    same(found, expected, "totals.json")
    has(stdout, "17 lines of json")


def text_statistics(out, stdout):
    found = json.loads((out / "stats.json").read_text(encoding="utf-8"))
    essay, note = found["essay.md"], found["note.txt"]
    counts = [essay[key] for key in ("words", "sentences", "paragraphs", "distinct_words")]
    same(counts, [94, 9, 4, 58], "counts of the essay")
    same(essay["top_words"]["river"], 6, "rivers")
    same(essay["top_phrases"], {"river bed": 3, "patient river": 2}, "phrases")
    has(essay["longest"][0], "nobody else read.")
    lacks(json.dumps(essay), "example.com", "counts")
    same([note["words"], note["sentences"], note["flesch"]], [13, 4, 118.9], "the note")
    assert re.search(r"^essay\.md +94 +9 ", stdout, re.MULTILINE), f"not the table: {stdout!r}"


def changelog(out, stdout):
    expected = """\
## [2.0.0] - 2026-02-12

### Breaking changes

* Drop the old file format (d4f6a82, Ana Sol)

### Added

* **export:** Write CSV files (a1f3c9e, Mia Chen)

### Fixed

* Keep the order of rows (#41) (b2d4e60, Ole Berg)
* **ui:** Show $HOME and `code` as they are (07c9d15, Mia Chen)

### Faster

* Read large files in parts (e5a7b93, Ole Berg)

### Other changes

* Update the logo & colours (f6b8c04, Ana Sol)

Thanks to Ana Sol, Mia Chen, Ole Berg.
"""
    same((out / "notes.md").read_text(), expected, "notes.md")
    has(stdout, "next version: 2.0.0\n", "Fixed: 2\n", "left out: 2\n")


def sql_report(out, stdout):
    report = (out / "report.md").read_text(encoding="utf-8")
    has(report, "## Sales by customer\n\n| name | orders | sales |\n|-|-:|-:|\n| Ada | 2 | 38.00 |")
    has(report, "| Grace | 1 | 8.00 |", "## Orders without a customer", "| 13 | 99.90 |")
    has(report, "## Query 3", "| 2026-01 | 33.00 |\n| 2026-02 | 145.90 |")
    database = sqlite3.connect(out / "data.sqlite")
    zips = database.execute("SELECT name, zip, typeof(id) FROM customers ORDER BY id").fetchall()
    same(zips[0], ("Ada", "01234", "integer"), "first customer")
    count = database.execute("SELECT count(*), sum(quantity) FROM order_items").fetchone()
    same(count, (4, 8), "items")
    database.close()
    has(stdout, "customers: 3 rows", "Sales by customer -> 2")


def archive_pack(out, stdout):
    files = {
        "delivery/README.txt": b"Read me first.\n",
        "delivery/src/deep/with space.csv": b"a;b\n1;2\n",
        "delivery/src/large.txt": b"x" * 300,
        "delivery/src/main.py": b'print("hello")\n',
    }
    with tarfile.open(out / "delivery.tar.gz") as archive:
        found = {
            member.name: archive.extractfile(member).read()
            for member in archive
            if member.isfile()
        }
    same(found, files, "files in the archive")
    sums = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    same((out / "delivery.sha256").read_text(), sums, "checksums")
    sizes = table(out / "delivery.files.tsv", "\t")
    same(sizes[0], ["300", "delivery/src/large.txt"], "largest file")
    same(len(sizes), 4, "listed files")
    has(stdout, "4 files, 338 bytes, 1 left out")


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: check.py NAME OUTDIR STDOUTFILE")
    name, out, stdout = sys.argv[1:]
    with open(stdout, encoding="utf-8") as file:
        text = file.read()
    try:
        globals()[name](Path(out), text)
    except Exception as error:
        sys.exit(f"{name}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
