"""Lists the holidays of a country."""

import holidays

days = holidays.country_holidays("NO", years=2026)
assert "2026-05-17" in days and "2026-05-18" not in days
assert "Easter" in holidays.country_holidays("GB", subdiv="ENG", years=2026)["2026-04-06"]
