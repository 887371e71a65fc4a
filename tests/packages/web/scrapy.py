"""Finds parts of a page, and follows a link."""

from scrapy.http import HtmlResponse

page = HtmlResponse("http://a/b", body=b"<a href='c'>C</a>")
assert page.follow(page.css("a")[0]).url == "http://a/c"
