"""Turns HTML and CSV into Markdown."""
# With: onnxruntime

import io

from markitdown import MarkItDown

page = io.BytesIO(b"<h1>Title</h1><p>Some <b>bold</b> text</p>")
convert = MarkItDown().convert_stream
assert convert(page, file_extension=".html").text_content == "# Title\n\nSome **bold** text"
assert "| 1 | 2 |" in convert(io.BytesIO(b"a,b\n1,2\n"), file_extension=".csv").text_content
