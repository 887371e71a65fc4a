"""html, html.parser, xml.etree, xml.dom, urllib.parse, mimetypes-free: parse, build, escape, query, join."""
import html
import io
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from urllib.parse import (parse_qs, parse_qsl, quote, quote_plus, unquote, unquote_plus, urldefrag, urlencode, urljoin,
                          urlsplit, urlunsplit)
from xml.dom import minidom
from xml.sax.saxutils import escape, quoteattr

print(html.escape("<a href='x'>\"&\"</a>"), html.escape('"', quote=False), html.unescape("&lt;&eacute;&#x1F600;&#65;&nbsp;&bogus;&amp;lt;"))


class Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.depth, self.out, self.text = [], 0, [], []

    def handle_starttag(self, tag, attrs):
        self.out.append("  " * self.depth + f"{tag} {dict(attrs)}")
        if tag == "a":
            self.links.append(dict(attrs).get("href"))
        if tag not in ("br", "img"):
            self.depth += 1

    def handle_startendtag(self, tag, attrs):
        self.out.append("  " * self.depth + f"{tag}/ {dict(attrs)}")

    def handle_endtag(self, tag):
        self.depth -= 1

    def handle_data(self, data):
        if data.strip():
            self.text.append(data.strip())

    def handle_comment(self, data):
        self.out.append("  " * self.depth + f"comment{data}")


page = Outline()
page.feed("""<html><body class="m n"><!-- note --><h1>Title &amp; more</h1>
<p>One <a href="/one?x=1&amp;y=2">link</a> and <a href='#two' data-x>another</a><br><img src=i.png alt=""/></p></body></html>""")
print("\n".join(page.out))
print(page.links, page.text, page.depth)

catalogue = ET.fromstring("""<?xml version="1.0"?>
<catalogue xmlns:x="urn:x" year="2024">
  <book id="b1" price="12.50"><title>First</title><x:tag>new</x:tag><author>Ann</author><author>Bob</author></book>
  <book id="b2" price="7"><title lang="fr">Deuxi&#232;me</title><author>Cy</author></book>
  <empty/>tail text
</catalogue>""")
print(catalogue.tag, catalogue.attrib, [child.tag for child in catalogue], len(catalogue))
for book in catalogue.findall("book"):
    print(book.get("id"), book.findtext("title"), [a.text for a in book.iter("author")], float(book.get("price")))
print(catalogue.find("book[@id='b2']/title").attrib, [t.text for t in catalogue.findall(".//title[@lang]")], catalogue.find("book[2]/author").text)
print(catalogue.find(".//x:tag", {"x": "urn:x"}).tag, catalogue.find("nope"), repr(catalogue.find("empty").tail), catalogue.findtext("nope", "default"))
print(sorted({element.tag for element in catalogue.iter()}), "".join(catalogue.itertext()).split())

root = ET.Element("report", {"n": "1"})
for name, value in (("a", "1 < 2"), ("b", 'quote " & amp'), ("c", None)):
    ET.SubElement(root, "item", name=name).text = value
root[0].tail = "between"
root.insert(0, ET.Comment("made here"))
print(ET.tostring(root, encoding="unicode"))
root.remove(root[1])
root[0].text = "changed"
ET.indent(root)
print(ET.tostring(root, encoding="unicode", short_empty_elements=False))
print(ET.tostring(ET.fromstring("<é>ü</é>")), ET.tostring(ET.XML("<a>ü</a>"), encoding="us-ascii"))
print(ET.canonicalize("<b  z='1' a='2'><c/></b>"))
events = [(event, element.tag) for event, element in ET.iterparse(io.BytesIO(b"<r><x>1</x><y/></r>"), events=("start", "end"))]
print(events)
for broken in ("<a><b></a>", "<a>&nope;</a>", "", "<a/><b/>"):
    try:
        ET.fromstring(broken)
    except ET.ParseError as error:
        print("ParseError at", error.position, end="; ")
print()
document = minidom.parseString("<list><i k='1'>one</i><i k='2'>two</i></list>")
print([(node.getAttribute("k"), node.firstChild.data) for node in document.getElementsByTagName("i")])
print(document.documentElement.toprettyxml(indent=" ", newl="|"), escape("<&>"), quoteattr('a "b" \'c\''))

url = "https://user:p%40ss@Example.org:8443/a/b%20c/;p?q=1&q=two&empty=&x=%E2%82%AC#frag"
parts = urlsplit(url)
print(parts.scheme, parts.netloc, parts.hostname, parts.port, parts.username, parts.password, parts.path, parts.query, parts.fragment)
print(parse_qs(parts.query), parse_qs(parts.query, keep_blank_values=True)["empty"], parse_qsl("a=1&b=2&a=3"))
print(urlunsplit(parts) == url, parts._replace(netloc="h", query="", fragment="").geturl(), urldefrag("a/b#c").fragment)
print(urlencode({"q": "a b&c", "l": [1, 2], "é": "ü"}, doseq=True), urlencode([("k", "v/w")], quote_via=quote, safe=""))
print(quote("a b/é?"), quote("a/b", safe=""), quote_plus("a b+c"), unquote("a%20b%2Fc+d"), unquote_plus("a+b%2B"), unquote("%ff", errors="replace"))
base = "http://h.org/a/b/c?x#y"
print([urljoin(base, r) for r in ("d", "./d", "../d", "../../../d", "/d", "//other/e", "?q", "#f", "", "https://x/")])
