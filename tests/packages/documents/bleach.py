"""Keeps allowed tags of HTML and makes links."""

import bleach

assert bleach.clean("<b>a</b><script>x</script>", tags={"b"}) == (
    "<b>a</b>&lt;script&gt;x&lt;/script&gt;"
)
assert bleach.linkify("see example.com").startswith('see <a href="http://example.com"')
