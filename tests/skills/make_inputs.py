"""Makes the binary files in inputs/: `isolet run --mount inputs:/inputs:rw --with ... THIS`.

It needs python-docx, pillow and reportlab. All else in inputs/ was written by hand.
"""

import gzip
from pathlib import Path

import docx
from docx.enum.style import WD_STYLE_TYPE
from docx.shared import Pt
from PIL import Image, ImageDraw
from reportlab.lib.pagesizes import A5
from reportlab.pdfgen.canvas import Canvas

INPUTS = Path("/inputs")


def offer():
    """A template in which Word has cut placeholders into runs."""
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "{{company}}"
    document.sections[0].footer.paragraphs[0].text = "Offer {{number}}"
    document.add_heading("Offer for {{client.name}}", 1)
    paragraph = document.add_paragraph("Dear {{cli")
    bold = paragraph.add_run("ent.na")
    bold.bold = True
    paragraph.add_run("me}}, this is our offer of {{ date }}.").font.size = Pt(12)
    table = document.add_table(3, 3)
    table.style = "Table Grid"
    for cells, texts in zip(
        table.rows,
        (
            ("Work", "Hours", "Price"),
            ("{{items.name}}", "{{items.hours}}", "{{items.price}}"),
            ("Total", "", "{{total}}"),
        ),
    ):
        for cell, text in zip(cells.cells, texts):
            cell.text = text
    document.add_paragraph("{{closing}}")
    # Half of the file, and of no use here.
    for rels in (document.part.package.rels, document.part.rels):
        for key, relation in list(rels.items()):
            if relation.reltype.endswith(("/thumbnail", "/stylesWithEffects")):
                rels.pop(key)
    for style in list(document.styles):
        if style.type == WD_STYLE_TYPE.TABLE and style.name not in ("Normal Table", "Table Grid"):
            style.delete()
    document.save(INPUTS / "offer.docx")


def pdf(name, title, pages):
    canvas = Canvas(str(INPUTS / name), pagesize=A5, invariant=1, pageCompression=0)
    canvas.setTitle(title)
    for number, lines in enumerate(pages, 1):
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(50, 520, f"{title}, page {number}")
        canvas.setFont("Helvetica", 11)
        for line, text in enumerate(lines):
            canvas.drawString(50, 480 - 18 * line, text)
        canvas.showPage()
    canvas.save()


def pictures():
    sea = Image.new("RGB", (320, 200))
    sea.putdata([(40, 90 + y // 2, 150 + x // 4) for y in range(200) for x in range(320)])
    ImageDraw.Draw(sea).ellipse((220, 20, 280, 80), "#f5c542")
    # Lies on its side, as photos do.
    exif = Image.Exif()
    exif[0x0112] = 6
    sea.rotate(90, expand=True).save(INPUTS / "sea.jpg", quality=70, exif=exif)
    sign = Image.new("RGBA", (120, 120), (0, 0, 0, 0))
    ImageDraw.Draw(sign).polygon([(60, 6), (114, 108), (6, 108)], "#c00000")
    sign.save(INPUTS / "sign.png", optimize=True)
    stripes = Image.new("P", (90, 150))
    stripes.putpalette([0, 0, 0, 255, 255, 255, 30, 120, 60])
    stripes.putdata([(x // 10) % 3 for _ in range(150) for x in range(90)])
    stripes.save(INPUTS / "stripes.gif")


def main():
    offer()
    pdf("spring.pdf", "Spring report", [["Visitors: 1,204", "Rain: 12 days"], ["Outlook: mild"]])
    pdf("autumn.pdf", "Autumn report", [[f"Week {week}: calm"] for week in range(36, 39)])
    pictures()
    log = (INPUTS / "access.log").read_bytes()
    (INPUTS / "access.log.gz").write_bytes(gzip.compress(log, mtime=0))


if __name__ == "__main__":
    main()
