"""Removes scripts from HTML."""

from lxml_html_clean import clean_html

assert clean_html("<p onclick='x()'>hi<script>y()</script></p>") == "<p>hi</p>"
