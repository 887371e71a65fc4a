"""Finds parts of HTML by CSS, XPath and expressions."""

from parsel import Selector

page = Selector("<ul><li class='a'>one 1</li><li>two 2</li></ul>")
assert page.css("li.a::text").get() == "one 1"
assert page.xpath("//li/text()").re(r"\d") == ["1", "2"]
