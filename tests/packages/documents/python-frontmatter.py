"""Reads the YAML before a text of Markdown."""

import frontmatter

post = frontmatter.loads("---\ntitle: Sea\ntags: [a, b]\n---\nCalm.")
assert post["title"] == "Sea" and post["tags"] == ["a", "b"] and post.content == "Calm."
