"""Makes a presentation from an outline in Markdown."""

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from pptx import Presentation
from pptx.exc import PackageNotFoundError
from pptx.util import Emu, Pt

MAX_BULLETS = 6
MAX_WORDS = 12


@dataclass
class Slide:
    title: str
    subtitle: list = field(default_factory=list)
    bullets: list = field(default_factory=list)
    table: list = field(default_factory=list)
    notes: list = field(default_factory=list)


def parse(text):
    """Returns the slides of an outline. The first is the title slide."""
    slides = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped:
            continue
        if stripped.startswith("# "):
            if slides:
                sys.exit(f"error: line {number}: only the first slide may begin with one #")
            slides.append(Slide(stripped[2:]))
        elif stripped.startswith("## "):
            if not slides:
                sys.exit(f"error: line {number}: the outline has to begin with '# TITLE'")
            slides.append(Slide(stripped[3:]))
        elif not slides:
            sys.exit(f"error: line {number}: the outline has to begin with '# TITLE'")
        elif stripped.startswith("#"):
            sys.exit(f"error: line {number}: there are no deeper titles than ##")
        elif stripped.startswith(">"):
            slides[-1].notes.append(stripped[1:].strip())
        elif len(slides) == 1:
            slides[0].subtitle.append(stripped)
        elif stripped.startswith("|"):
            cells = [cell.strip() for cell in stripped.strip("|").split("|")]
            if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                slides[-1].table.append(cells)
        elif match := re.match(r"( *)[-*] +(.*)", line):
            slides[-1].bullets.append((min(len(match[1]) // 2, 4), match[2].strip()))
        else:
            slides[-1].bullets.append((0, stripped))
    if not slides:
        sys.exit("error: the outline is empty")
    return slides


def write_text(paragraph, text):
    """Writes text into a paragraph, with what is between ** in bold."""
    for index, part in enumerate(text.split("**")):
        if part:
            run = paragraph.add_run()
            run.text = part
            if index % 2:
                run.font.bold = True


def add_bullets(slide, bullets):
    frame = slide.placeholders[1].text_frame
    for index, (level, text) in enumerate(bullets):
        paragraph = frame.paragraphs[0] if index == 0 else frame.add_paragraph()
        paragraph.level = level
        write_text(paragraph, text)


def add_table(presentation, slide, rows):
    width = max(len(row) for row in rows)
    body = slide.placeholders[1]
    left, top, across = body.left, body.top, body.width
    body._element.getparent().remove(body._element)
    height = Emu(min(len(rows) * 420_000, presentation.slide_height - top))
    table = slide.shapes.add_table(len(rows), width, left, top, across, height).table
    for row, cells in enumerate(rows):
        for column in range(width):
            frame = table.cell(row, column).text_frame
            write_text(frame.paragraphs[0], cells[column] if column < len(cells) else "")
            for run in frame.paragraphs[0].runs:
                run.font.size = Pt(16)


def drop_slides(presentation):
    ids = presentation.slides._sldIdLst
    for each in list(ids):
        presentation.part.drop_rel(each.rId)
        ids.remove(each)


def build(presentation, slides):
    layouts = presentation.slide_layouts
    for index, content in enumerate(slides):
        made = presentation.slides.add_slide(layouts[0 if index == 0 else 1])
        made.shapes.title.text = content.title
        if index == 0:
            made.placeholders[1].text = "\n".join(content.subtitle)
        elif content.bullets or not content.table:
            add_bullets(made, content.bullets)
        else:
            add_table(presentation, made, content.table)
        if content.notes:
            made.notes_slide.notes_text_frame.text = "\n".join(content.notes)
        if content.bullets and content.table:
            more = presentation.slides.add_slide(layouts[1])
            more.shapes.title.text = content.title
            add_table(presentation, more, content.table)


def warnings(content):
    if len(content.bullets) > MAX_BULLETS:
        yield f"{len(content.bullets)} bullets"
    for _, text in content.bullets:
        if len(text.split()) > MAX_WORDS:
            yield f"a bullet of {len(text.split())} words"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outline")
    parser.add_argument("output")
    parser.add_argument("--template", help="a presentation whose layouts to use")
    args = parser.parse_args()
    try:
        slides = parse(Path(args.outline).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: cannot read {args.outline}: {error}")
    try:
        presentation = Presentation(args.template)
    except (PackageNotFoundError, KeyError, ValueError):
        sys.exit(f"error: not a presentation: {args.template}")
    drop_slides(presentation)
    build(presentation, slides)
    presentation.core_properties.title = slides[0].title
    presentation.save(args.output)
    for number, content in enumerate(slides, 1):
        print(f"{number}. {content.title}")
        for warning in warnings(content):
            print(f"   warning: {warning}")
    print(f"{args.output}: {len(presentation.slides)} slides")


if __name__ == "__main__":
    main()
