"""Turns a saved web page into Markdown."""

import argparse
import re
import sys
from pathlib import Path
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Comment, NavigableString, Tag

DROPPED = "script, style, noscript, template, nav, form, iframe, svg, [hidden], [aria-hidden=true]"
# Outside an article these are the site's, not the page's.
FRAME = "body > header, body > footer, body > aside, main > aside, [role=navigation]"
BLOCKS = {
    "address", "article", "aside", "blockquote", "dd", "details", "div", "dl", "dt", "figcaption",
    "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol",
    "p", "pre", "section", "summary", "table", "ul",
}


class Converter:
    """Writes elements as Markdown, and counts them."""

    def __init__(self, base):
        self.base = base
        self.counts = {"headings": 0, "links": 0, "tables": 0, "code blocks": 0}

    def blocks(self, element):
        """Returns the blocks of Markdown in an element."""
        made, line = [], []

        def end_line():
            if text := self.tidy("".join(line)):
                made.append(text)
            line.clear()

        for child in element.children:
            if isinstance(child, Comment):
                continue
            if isinstance(child, Tag) and (child.name in BLOCKS or self.has_blocks(child)):
                end_line()
                made.extend(self.block(child))
            else:
                line.append(self.inline(child))
        end_line()
        return made

    @staticmethod
    def has_blocks(tag):
        return tag.find(lambda each: each.name in BLOCKS) is not None

    @staticmethod
    def tidy(text):
        text = re.sub(r"[ \t\r\n]*\0[ \t\r\n]*", "  \n", re.sub(r"[ \t\r\n]+", " ", text))
        return text.strip()

    def block(self, tag):
        name = tag.name
        if re.fullmatch("h[1-6]", name):
            text = self.tidy(self.inlines(tag))
            self.counts["headings"] += bool(text)
            return [f"{'#' * int(name[1])} {text}"] if text else []
        if name == "pre":
            return [self.code_block(tag)]
        if name in ("ul", "ol"):
            items = self.items(tag)
            return ["\n".join(items)] if items else []
        if name == "table":
            return self.table(tag)
        if name == "hr":
            return ["---"]
        if name == "blockquote":
            text = "\n\n".join(self.blocks(tag))
            return ["\n".join(f"> {line}".rstrip() for line in text.split("\n"))] if text else []
        if name == "dt":
            return [f"**{text}**" for text in [self.tidy(self.inlines(tag))] if text]
        return self.blocks(tag)

    def items(self, tag):
        start = tag.get("start", "1")
        number = int(start) if start.isdecimal() else 1
        made = []
        for item in tag.find_all("li", recursive=False):
            mark = "- " if tag.name == "ul" else f"{number}. "
            number += 1
            # A list directly after the text of an item needs no empty line.
            text = re.sub(r"\n\n(?=- |\d+\. )", "\n", "\n\n".join(self.blocks(item)))
            indent = "\n" + " " * len(mark)
            made.append(mark + re.sub(r"\n(?=[^\n])", indent, text))
        return made

    def code_block(self, tag):
        self.counts["code blocks"] += 1
        text = tag.get_text().strip("\n")
        code = tag.find("code")
        classes = [*tag.get("class", []), *(code.get("class", []) if code else [])]
        found = [re.fullmatch(r"(?:language|lang|highlight-source)-([\w+#-]+)", c) for c in classes]
        language = next((match[1] for match in found if match), "")
        fence = "```"
        while fence in text:
            fence += "`"
        return f"{fence}{language}\n{text}\n{fence}"

    def table(self, tag):
        rows = []
        for row in tag.find_all("tr"):
            if row.find_parent("table") is tag:
                cells = row.find_all(["td", "th"], recursive=False)
                texts = [self.tidy(self.inlines(cell)).replace("  \n", "<br>") for cell in cells]
                rows.append([text.replace("|", "\\|") for text in texts])
        rows = [row for row in rows if any(row)]
        if not rows:
            return []
        self.counts["tables"] += 1
        width = max(map(len, rows))
        rows = [row + [""] * (width - len(row)) for row in rows]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, "|-" * width + "|")
        caption = tag.find("caption")
        title = [self.tidy(self.inlines(caption))] if caption else []
        return [*title, "\n".join(lines)]

    def inlines(self, tag):
        return "".join(self.inline(child) for child in tag.children)

    def inline(self, node):
        if isinstance(node, Comment):
            return ""
        if isinstance(node, NavigableString):
            return re.sub(r"([\\*_`\[\]])", r"\\\1", str(node))
        name = node.name
        if name == "br":
            return "\0"
        if name == "img":
            address = node.get("src")
            return f"![{node.get('alt', '')}]({self.address(address)})" if address else ""
        if name in ("code", "kbd", "samp", "tt"):
            text = node.get_text()
            ticks = "``" if "`" in text else "`"
            return f"{ticks}{text}{ticks}" if text.strip() else ""
        text = self.inlines(node)
        if not text.strip():
            return text
        if name in ("strong", "b"):
            return self.wrapped(text, "**")
        if name in ("em", "i", "cite"):
            return self.wrapped(text, "*")
        if name in ("del", "s"):
            return self.wrapped(text, "~~")
        address = node.get("href") if name == "a" else None
        if address and not address.startswith(("#", "javascript:")):
            self.counts["links"] += 1
            return f"[{self.tidy(text)}]({self.address(address)})"
        return text

    @staticmethod
    def wrapped(text, mark):
        before, inner, after = re.fullmatch(r"(\s*)(.*?)(\s*)", text, re.DOTALL).groups()
        return f"{before}{mark}{inner}{mark}{after}"

    def address(self, address):
        address = urljoin(self.base, address.strip()) if self.base else address.strip()
        return address.replace(" ", "%20").replace(")", "%29")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--base-url", default="")
    parser.add_argument("--select", help="a CSS selector of the part to take")
    args = parser.parse_args()
    try:
        raw = Path(args.input).read_bytes()
    except OSError as error:
        sys.exit(f"error: cannot read {args.input}: {error.strerror}")
    page = BeautifulSoup(raw, "html.parser")
    if page.find(True) is None:
        sys.exit(f"error: no HTML in {args.input}")
    title = page.title.get_text(" ", strip=True) if page.title else ""
    for tag in page.select(DROPPED):
        tag.decompose()
    if args.select:
        parts = page.select(args.select)
        if not parts:
            sys.exit(f"error: nothing matches {args.select!r}")
    else:
        for tag in page.select(FRAME):
            tag.decompose()
        parts = [page.find("main") or page.find("article") or page.body or page]
    converter = Converter(args.base_url)
    blocks = [block for part in parts for block in converter.block(part)]
    if title and not any(block.startswith("# ") for block in blocks):
        blocks.insert(0, f"# {title}")
    text = "\n\n".join(blocks) + "\n"
    Path(args.output).write_text(text, encoding="utf-8")
    print(f"title: {title or '(none)'}")
    print(", ".join(f"{count} {name}" for name, count in converter.counts.items()))
    print(f"{args.output}: {len(text.split())} words")


if __name__ == "__main__":
    main()
