"""Repairs text that was decoded wrongly."""

import ftfy

assert ftfy.fix_text("âœ” schÃ¶n") == "✔ schön"
