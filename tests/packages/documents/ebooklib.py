"""Writes a book of EPUB and reads its chapter."""

from ebooklib import ITEM_DOCUMENT, epub

book = epub.EpubBook()
book.set_title("Sea")
chapter = epub.EpubHtml(title="One", file_name="one.xhtml", content="<h1>One</h1>")
book.add_item(chapter)
book.add_item(epub.EpubNcx())
book.spine = [chapter]
epub.write_epub("a.epub", book)
book = epub.read_epub("a.epub")
assert book.get_metadata("DC", "title")[0][0] == "Sea"
assert b"<h1>One</h1>" in next(book.get_items_of_type(ITEM_DOCUMENT)).get_content()
