"""Makes plurals, articles and words of numbers."""

import inflect

engine = inflect.engine()
assert engine.plural("mouse") == "mice" and engine.a("hour") == "an hour"
assert engine.number_to_words(1234) == "one thousand, two hundred and thirty-four"
