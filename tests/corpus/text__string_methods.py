"""Strings and bytes: every common method, edge cases of split, strip, partition, replace, find, bytes and bytearray."""
text = "  The rain in Spain, the plain truth  "
print([text.strip(), text.lstrip(), text.rstrip(), "xxabcxyx".strip("xy"), "prefix-body".removeprefix("prefix-"), "a.py".removesuffix(".py")])
print(text.split(), text.split(" "), "a,b,,c,".split(","), "a,b,c".split(",", 1), "a,b,c".rsplit(",", 1), "".split(), "".split(","))
print("k=v=w".partition("="), "k=v=w".rpartition("="), "none".partition("="), "none".rpartition("="))
print("banana".find("an"), "banana".rfind("an"), "banana".find("an", 2, 4), "banana".index("n"), "banana".count("an"), "aaa".count("aa"), "abc".count(""))
print("banana".replace("a", "o"), "banana".replace("a", "o", 2), "abc".replace("", "-"), "x".replace("x", ""))
print("a-b".join("xyz"), ", ".join(str(n) for n in range(3)), "".join([]), "|".join(["one"]))
print("abc".center(9, "*"), "42".zfill(5), "-42".zfill(5), "abc".ljust(5, "."), "abc".rjust(5), "abc".rjust(2))
print("Hello".startswith(("x", "He")), "Hello".endswith("lo", 3), "Hello".startswith("l", 2), "".startswith(""), "abc".endswith(()))
print([s.isalpha() for s in ("abc", "a1", "", "é")], ["1a".isalnum(), "12".isdigit(), " \t".isspace(), "Ab C".istitle(), "aB".isupper(), "if".isidentifier()])
print("a\nb\r\nc\n".splitlines(), "a\nb\n".splitlines(keepends=True), "one\n\ntwo".split("\n"))
print("abc" < "abd", "Z" < "a", "" < "a", "abc" * 2, 0 * "x", "a" "b", "b" in "abc", "" in "", max("hello"), sorted("hello"))
print("swap Case".swapcase(), "ﬁ".upper(), "%s" % "x", "tab\tx".expandtabs(8), "abc"[::-1], "abcdef"[1:5:2], "abc"[-1])
print(repr('it\'s "quoted"'), repr("it's"), repr('say "hi"'), repr("back\\slash\ttab\x01"), r"raw\n", "a\
b", "\x41\u0042\N{DIGIT FIVE}\103")
for broken in (lambda: "abc"[5], lambda: "abc".index("z"), lambda: ",".join([1]), lambda: "a" + 1, lambda: "".split(""), lambda: chr(-1)):
    try:
        broken()
    except Exception as error:
        print(type(error).__name__, end=" ")
print()

raw = b"bytes \x00\xff\n"
print(raw, len(raw), raw[0], raw[:5], list(raw[-3:]), raw.hex(), raw.hex("-", 2), bytes.fromhex("00 ff 10"), raw.decode("latin-1").encode("latin-1") == raw)
print(bytes(3), bytes([1, 2]), bytes("é", "utf-8"), b"a" + b"b", b"ab" * 2, b"b" in b"abc", 98 in b"abc", b"abc".find(b"c"), b"a,b".split(b","))
print(b"Hello".upper(), b"Hello".swapcase(), b" x ".strip(), b"-".join([b"a", b"b"]), b"abc".translate(None, b"b"), b"%d-%s" % (5, b"x"), b"abc".isalpha())
buffer = bytearray(b"hello")
buffer[0] = ord("J")
buffer[1:3] = b"ELL"
buffer += b"!"
buffer.append(63)
buffer.insert(0, 62)
print(buffer, buffer.pop(), buffer.count(b"l"), buffer.find(b"L"), bytes(buffer), buffer[::2], buffer == b">JELLlo!")
del buffer[:2]
buffer.reverse()
buffer.extend(range(65, 68))
print(buffer, buffer.decode(), bytearray.fromhex("4142"), buffer.startswith(b"!"))
for broken in (lambda: bytes([256]), lambda: b"a" + "b", lambda: bytes.fromhex("0g"), lambda: b"abc".index(b"z"), lambda: bytearray(b"x").pop(5)):
    try:
        broken()
    except Exception as error:
        print(type(error).__name__, end=" ")
print()
print(int.from_bytes(b"\x01\x02", "big"), int.from_bytes(b"\xff\xfe", "little", signed=True), (1000).to_bytes(3, "big"), (-2).to_bytes(2, "little", signed=True))


def is_palindrome(s):
    letters = [c.lower() for c in s if c.isalnum()]
    return letters == letters[::-1]


def caesar(s, shift):
    return "".join(
        chr((ord(c) - base + shift) % 26 + base) if c.isascii() and c.isalpha() else c
        for c in s
        for base in [65 if c.isupper() else 97]
    )


def run_length(s):
    out, i = [], 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        out.append(f"{s[i]}{j - i if j - i > 1 else ''}")
        i = j
    return "".join(out)


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row, previous = [i], row
        for j, y in enumerate(b, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (x != y)))
    return row[-1]


def longest_common(strings):
    shortest = min(strings, key=len)
    return max((shortest[i:j] for i in range(len(shortest)) for j in range(i + 1, len(shortest) + 1) if all(shortest[i:j] in s for s in strings)), key=len, default="")


print(is_palindrome("A man, a plan, a canal: Panama"), caesar("Hello, World!", 3), caesar(caesar("xyz", 5), -5), run_length("aaabccd"))
print(levenshtein("kitten", "sitting"), levenshtein("", "abc"), longest_common(["interstellar", "internet", "winter"]), longest_common(["a", "b"]))
print({w: [i for i, c in enumerate(w) if c in "aeiou"] for w in ("queue", "rhythm")}, sorted("Banana apple cherry".split(), key=str.casefold))
print(sorted(["file10", "file9", "File1"], key=lambda s: (s.rstrip("0123456789").lower(), int(s.lstrip("FilefI") or 0))))
