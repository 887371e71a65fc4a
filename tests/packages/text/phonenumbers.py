"""Reads, checks and formats numbers of telephones."""

import phonenumbers as pn

number = pn.parse("020 8366 1177", "GB")
assert pn.is_valid_number(number)
assert pn.format_number(number, pn.PhoneNumberFormat.E164) == "+442083661177"
