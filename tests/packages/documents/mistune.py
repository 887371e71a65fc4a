"""Renders Markdown with a table, and shows its parts."""

import mistune

html = mistune.create_markdown(plugins=["table"])("| a |\n|---|\n| 1 |\n")
assert "<td>1</td>" in html
assert mistune.create_markdown(renderer="ast")("# Hi")[0]["attrs"] == {"level": 1}
