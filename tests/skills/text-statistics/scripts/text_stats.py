"""Measures texts: counts, readability, frequent words and phrases."""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

COMMON = set(
    "a about after all also an and any are as at be because been but by can could did do does for "
    "from had has have he her his how i if in into is it its just like me more most my no not of "
    "on one only or other our out over she so some such than that the their them then there these "
    "they this to up was we were what when which who will with would you your".split()
)
ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|No|Fig)\.$")
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def plain(text):
    """Returns the text without the marks of Markdown, code and addresses."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"https?://\S+|`[^`\n]*`", " ", text)
    text = re.sub(r"^\s*(?:#+|>|[-*+]|\d+\.)\s+", "", text, flags=re.MULTILINE)
    return re.sub(r"[*_~|]", " ", text)


def sentences(paragraph):
    made, start = [], 0
    for match in re.finditer(r"[.!?]+[\"'”’)]*\s+(?=[\"'“‘(]?[A-Z0-9])", paragraph):
        if ABBREVIATION.search(paragraph[start : match.start() + 1]):
            continue
        made.append(paragraph[start : match.end()].strip())
        start = match.end()
    made.append(paragraph[start:].strip())
    return [sentence for sentence in made if WORD.search(sentence)]


def syllables(word):
    """Returns about how many syllables an English word has."""
    word = re.sub(r"[^a-z]", "", word.lower())
    if len(word) > 3:
        word = re.sub(r"(?:[^laeiouy]es|[^td]ed|[^laeiouy]e)$", lambda end: end[0][0], word)
    return max(1, len(re.findall(r"[aeiouy]+", word)))


def measure(text, top):
    text = plain(text)
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if WORD.search(part)]
    flat = [" ".join(part.split()) for part in paragraphs]
    found = [sentence for part in flat for sentence in sentences(part)]
    words = WORD.findall(text)
    lower = [word.lower() for word in words]
    per_sentence = len(words) / max(len(found), 1)
    per_word = sum(map(syllables, words)) / max(len(words), 1)
    pairs = Counter(
        f"{first} {second}"
        for sentence in found
        for first, second in zip(*(WORD.findall(sentence.lower())[start:] for start in (0, 1)))
        if first not in COMMON and second not in COMMON
    )
    telling = Counter(word for word in lower if word not in COMMON and len(word) > 2)
    ranked = sorted(telling.items(), key=lambda each: (-each[1], each[0]))
    phrases = sorted(pairs.items(), key=lambda each: (-each[1], each[0]))
    return {
        "words": len(words),
        "sentences": len(found),
        "paragraphs": len(paragraphs),
        "characters": sum(map(len, flat)),
        "minutes": round(len(words) / 230, 1),
        "words_per_sentence": round(per_sentence, 1),
        "distinct_words": len(set(lower)),
        "flesch": round(206.835 - 1.015 * per_sentence - 84.6 * per_word, 1),
        "top_words": dict(ranked[:top]),
        "top_phrases": {phrase: count for phrase, count in phrases[:top] if count > 1},
        "longest": sorted(found, key=lambda each: -len(WORD.findall(each)))[:3],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--output", required=True)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--max-words", type=int)
    args = parser.parse_args()

    results = {}
    for name in args.texts:
        try:
            text = Path(name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            sys.exit(f"error: cannot read {name}: {error}")
        if not WORD.search(text):
            sys.exit(f"error: no words in {name}")
        results[Path(name).name] = measure(text, args.top)
    output = json.dumps(results, ensure_ascii=False, indent=2)
    Path(args.output).write_text(output + "\n", encoding="utf-8")

    width = max(map(len, results))
    print(f"{'text':{width}}  words  sentences  minutes  flesch")
    for name, found in results.items():
        print(
            f"{name:{width}}  {found['words']:5}  {found['sentences']:9}"
            f"  {found['minutes']:7}  {found['flesch']:6}"
        )
    long = [name for name, found in results.items() if found["words"] > (args.max_words or 1e9)]
    if long:
        sys.exit(f"more than {args.max_words} words: {', '.join(long)}")


if __name__ == "__main__":
    main()
