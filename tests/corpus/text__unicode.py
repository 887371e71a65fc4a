"""Unicode: normalisation, casefolding, categories, code points beyond the BMP, surrogates, encodings and error handlers."""
import codecs
import unicodedata

samples = {"composed": "\u00e9", "decomposed": "e\u0301", "ligature": "\ufb01n", "angstrom": "\u212b", "hangul": "\ud55c", "wide": "\uff21\uff11"}
for name, text in samples.items():
    forms = {form: unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    print(name, {form: ascii(value) for form, value in forms.items()}, unicodedata.is_normalized("NFC", text))
print("equal after NFC:", samples["composed"] == samples["decomposed"], unicodedata.normalize("NFC", samples["decomposed"]) == samples["composed"])

print("casefold:", "Straße".casefold(), "STRASSE".casefold() == "Straße".casefold(), "Straße".lower(), "ß".upper(), "ŉ".upper())
print("Turkish and Greek:", ascii("İ".lower()), "ΑΣΣ".lower(), "σς".casefold(), "ǆ".title(), "ﬀ".capitalize(), "ÿ".swapcase())
print("title:", "they're bill's — élan vital".title(), "hELLO wORLD".capitalize())


def strip_accents(text):
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


print("stripped:", strip_accents("Crème Brûlée à la Façon d'Åsa, Đorđe, Łódź, naïve"))

for c in "A é ½ Ⅷ ٣ 日 € 😀 \u200d \u0301 \t _".replace(" ", "") + " ":
    print(f"U+{ord(c):04X} {unicodedata.category(c)} {unicodedata.name(c, 'no name')} num={unicodedata.numeric(c, None)} {unicodedata.east_asian_width(c)}")
print(unicodedata.lookup("SNOWMAN"), "\N{GREEK SMALL LETTER ALPHA}", unicodedata.bidirectional("א"), unicodedata.mirrored("("))
print("predicates:", [("²".isdigit(), "²".isdecimal(), "½".isnumeric(), "٣".isdecimal(), int("٣٤"), "é".isidentifier(), "日本".isalpha())])

emoji = "👩‍💻👍🏽🇫🇷"
print("lengths:", len(emoji), len(emoji.encode()), len(emoji.encode("utf-16-le")) // 2, [f"{ord(c):x}" for c in emoji])
print("reversed by code point:", "añ😀b"[::-1], "añ😀b"[2], "añ😀b".find("b"), max("añ😀b"), sorted("éeEz😀a"))

for encoding in ("utf-8", "utf-16-be", "utf-32-le", "latin-1", "cp1252", "ascii", "utf-7", "koi8-r", "shift_jis", "gb18030"):
    try:
        print(encoding, "é€".encode(encoding).hex(" "), end="; ")
    except UnicodeEncodeError as error:
        print(f"{encoding} cannot encode {error.object[error.start:error.end]!r}", end="; ")
print()
for errors in ("ignore", "replace", "backslashreplace", "xmlcharrefreplace", "namereplace"):
    print(errors, "aé😀".encode("ascii", errors))
bad = b"ok \xff\xfe caf\xe9 \xe2\x82"
for errors in ("ignore", "replace", "backslashreplace", "surrogateescape"):
    print(errors, ascii(bad.decode("utf-8", errors)))
assert bad.decode("utf-8", "surrogateescape").encode("utf-8", "surrogateescape") == bad
try:
    bad.decode()
except UnicodeDecodeError as error:
    print(error.encoding, error.start, error.end, error.object[error.start])

lone = "a\ud800b"
print("lone surrogate:", len(lone), ascii(lone), lone.isprintable(), lone.encode("utf-8", "surrogatepass"))
try:
    lone.encode("utf-8")
except UnicodeEncodeError as error:
    print("not encodable:", error.start, error.reason)
pair = "\ud83d\ude00"
print("a pair is not a character:", pair == "😀", pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le") == "😀")

codecs.register_error("shout", lambda error: (f"<{ord(error.object[error.start]):X}>", error.start + 1))
print("own handler:", "naïve ☃".encode("ascii", "shout"))
decoder = codecs.getincrementaldecoder("utf-8")()
print("incremental:", [decoder.decode(bytes([b])) for b in "é€😀".encode()], codecs.lookup("UTF8").name, codecs.encode("abc", "rot13"))
print("bom:", "x".encode("utf-8-sig"), b"\xef\xbb\xbfx".decode("utf-8-sig"), codecs.BOM_UTF16_BE, "x".encode("utf-16-be"))
print("escapes:", "a\u00e9\U0001f600".encode("unicode_escape"), b"\\x41\\u0042".decode("unicode_escape"), "é".encode("punycode"), "bücher.de".encode("idna"))

naïve_größe, 变量 = 3, 4
print("identifiers:", naïve_größe + 变量, [k for k in list(globals()) if not k.isascii()])
print("translate:", "hello".translate(str.maketrans("el", "ip", "o")), "äöü".translate({ord("ä"): "ae", ord("ö"): "oe", ord("ü"): None}))
print("whitespace:", "a\u00a0b\u2003c\u200bd".split(), "\u3000x\u3000".strip(), "a\x85b\u2028c\r\nd\x0be".splitlines())
print("width:", [sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in s) for s in ("abc", "日本語", "ｱｲ", "Ａ")])
print(ascii("é😀\x7f\n"), repr("\x00\x1f\u00ad\u200b\ue000\U000e0001"), "\x7f".isprintable(), "tab\there".expandtabs(4))
