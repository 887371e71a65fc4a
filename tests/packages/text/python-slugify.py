"""Makes names for addresses of pages."""

from slugify import slugify

assert slugify("Übung macht den Meister!") == "ubung-macht-den-meister"
