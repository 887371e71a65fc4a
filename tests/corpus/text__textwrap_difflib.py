"""textwrap, difflib, shlex, fnmatch: wrapping and dedenting, diffs and close matches, shell quoting and glob patterns."""
import difflib
import fnmatch
import shlex
import textwrap

story = (
    "Untrusted code is code that nobody has read yet. It may be wonderful, it may be wrong, and a well-behaved "
    "sandbox treats both alike: averyveryverylongwordthatdoesnotfitanywhere, then short ones.\tTabs too."
)
for width in (30, 48):
    print(f"-- {width}")
    print(textwrap.fill(story, width, initial_indent="* ", subsequent_indent="  "))
print(textwrap.wrap(story, 40, break_long_words=False, break_on_hyphens=False)[2:4])
print(textwrap.wrap(story, 40, max_lines=2, placeholder=" [...]"))
print(textwrap.shorten(story, 45), "|", textwrap.shorten("fits", 10), "|", textwrap.wrap("", 10))

block = """
    def f():
        if True:
            return 1

    # end
"""
print(repr(textwrap.dedent(block)))
print(textwrap.indent("one\n\n  two\nthree", "> "))
print(textwrap.indent("one\n\ntwo", "+ ", lambda line: True))
wrapper = textwrap.TextWrapper(width=20, drop_whitespace=False, replace_whitespace=False, tabsize=4)
print(wrapper.wrap("keep  the   spaces\tand tabs"))

before = """[server]
host = localhost
port = 80
debug = true

[log]
level = info
""".splitlines(keepends=True)
after = """[server]
host = example.org
port = 8080
debug = true
workers = 4

[log]
level = info
""".splitlines(keepends=True)
print("".join(difflib.unified_diff(before, after, "a/conf", "b/conf", n=1)))
print("".join(difflib.ndiff(before[:3], after[:3])))
print("".join(difflib.context_diff(["one\n", "two\n"], ["one\n", "TWO\n"], "old", "new")))
delta = list(difflib.ndiff(before, after))
assert list(difflib.restore(delta, 1)) == before and list(difflib.restore(delta, 2)) == after

matcher = difflib.SequenceMatcher(None, "the quick brown fox", "that quick crown fax")
for tag, i1, i2, j1, j2 in matcher.get_opcodes():
    if tag != "equal":
        print(f"{tag:8} {matcher.a[i1:i2]!r} -> {matcher.b[j1:j2]!r}")
print(f"ratio {matcher.ratio():.4f} quick {matcher.quick_ratio():.4f}", matcher.find_longest_match().size, len(matcher.get_matching_blocks()))
print(difflib.get_close_matches("appel", ["ape", "apple", "peach", "puppy", "appeal"]), difflib.get_close_matches("zzz", ["abc"]))
print(difflib.get_close_matches("whlie", ["while", "whole", "wheel"], n=1, cutoff=0.7))


def merge(old, new):
    """A line-level merge report built on opcodes."""
    out = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        out.append({"equal": f"={i2 - i1}", "insert": f"+{j2 - j1}", "delete": f"-{i2 - i1}", "replace": f"~{i2 - i1}/{j2 - j1}"}[tag])
    return " ".join(out)


print(merge(before, after), "|", merge("abcdef", "abXdefY"), "|", merge([], [1]))

print(shlex.split("run 'two words' \"and $quotes\" back\\ slash --opt=\"x y\" # not a comment"))
print(shlex.split("a b # comment", comments=True), shlex.join(["echo", "it's", "a b", "", "plain"]), shlex.quote("$(rm -rf)"))
try:
    shlex.split("an 'unclosed quote")
except ValueError as error:
    print("ValueError:", error)
lexer = shlex.shlex("x=1; y = 'two' && z", posix=True, punctuation_chars=True)
print(list(lexer))

names = ["main.py", "test_main.py", "README.md", ".hidden", "data1.csv", "data22.csv", "Data3.CSV"]
print(fnmatch.filter(names, "*.py"), fnmatch.filter(names, "data?.csv"), fnmatch.filter(names, "[!d]*"), fnmatch.fnmatchcase("Data3.CSV", "*.csv"))
columns = [("Name", "Description"), ("alpha", "the first letter of the Greek alphabet"), ("omega", "the last one, and a longer explanation")]
for name, description in columns:
    for index, part in enumerate(textwrap.wrap(description, 22)):
        print(f"{name if index == 0 else '':<8}| {part:<22} |")
