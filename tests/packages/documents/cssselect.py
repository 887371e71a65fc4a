"""Turns selectors of CSS into XPath."""

from cssselect import GenericTranslator

path = GenericTranslator().css_to_xpath("div.note > a[href]")
assert path.endswith("/a[@href]") and "contains(concat(' ', normalize-space(@class)" in path
