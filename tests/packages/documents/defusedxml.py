"""Refuses XML that expands without end."""

from defusedxml import EntitiesForbidden, ElementTree

assert ElementTree.fromstring("<a><b/></a>")[0].tag == "b"
try:
    ElementTree.fromstring("<!DOCTYPE a [<!ENTITY b 'bb'>]><a>&b;</a>")
    raise SystemExit("it expands")
except EntitiesForbidden:
    pass
