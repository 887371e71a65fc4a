# Patterns that backtrack, and other searches that take long.

# %% nested repetitions
import re
re.match(r"(a+)+$", "a" * 60 + "b")

# %% alternatives that overlap
import re
re.match(r"(a|aa)+$", "a" * 100 + "b")

# %% repeated words
import re
re.match(r"(\w+\s*)+:", "word " * 40)

# %% a back reference
import re
re.match(r"(.*)\1(.*)\2x", "ab" * 400)

# %% many optional characters
import re
re.match("a?" * 40 + "a" * 40, "a" * 40)

# %% a lookahead in a loop
import re
re.search(r"(?=(a+))\1*b", "a" * 30_000)

# %% a pattern of a megabyte
import re
re.compile("(a|b)" * 200_000)

# %% groups nested 100,000 deep
import re
re.compile("(" * 100_000 + ")" * 100_000)

# %% a substitution that grows
import re
s = "a"
while True:
    s = re.sub("a", "aa", s)

# %% a split at every empty match
import re
re.split(r"(?:x*)(?:y*)(?:z*)", "a" * 50_000_000)

# %% a difference of long texts
import difflib
a = "ab" * 20_000
difflib.SequenceMatcher(None, a, a[::-1], autojunk=False).ratio()

# %% a file name pattern
import fnmatch
fnmatch.fnmatch("a" * 50, "*a" * 25 + "b")
