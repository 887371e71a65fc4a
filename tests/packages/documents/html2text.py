"""Turns a page into text with links."""

import html2text

assert html2text.html2text("<p>See <a href='/x'>this</a></p>").strip() == "See [this](/x)"
