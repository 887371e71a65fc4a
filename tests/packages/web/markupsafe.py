"""Escapes HTML."""

from markupsafe import Markup, escape

assert escape("<b>") == Markup("&lt;b&gt;")
assert Markup("<i>%s</i>") % "<b>" == "<i>&lt;b&gt;</i>"
