"""Checks and normalises addresses of e-mail."""

from email_validator import EmailNotValidError, validate_email

assert validate_email("Ann@EXAMPLE.org", check_deliverability=False).normalized == "Ann@example.org"
try:
    validate_email("no", check_deliverability=False)
    raise SystemExit("it accepts anything")
except EmailNotValidError:
    pass
