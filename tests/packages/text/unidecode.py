"""Writes any text in ASCII."""

from unidecode import unidecode

assert unidecode("Škoda Ελλάδα 北京") == "Skoda Ellada Bei Jing "
