"""Finds countries, currencies and languages by their codes and names."""

import pycountry

assert pycountry.countries.get(alpha_2="NO").name == "Norway"
assert pycountry.currencies.get(alpha_3="EUR").numeric == "978"
assert pycountry.countries.search_fuzzy("Germany")[0].alpha_3 == "DEU"
