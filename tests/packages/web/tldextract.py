"""Splits the name of a server."""

import tldextract

extract = tldextract.TLDExtract(suffix_list_urls=())
assert extract("https://forums.bbc.co.uk/x").registered_domain == "bbc.co.uk"
