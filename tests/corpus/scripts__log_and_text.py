"""Log analysis and text statistics: parsing, sessions, percentiles, bursts, TF-IDF, n-grams, readability, a Markov chain."""
import hashlib
import math
import random
import re
from collections import Counter, defaultdict, deque
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import NamedTuple

PATTERN = re.compile(r'(?P<ip>\S+) - (?P<user>\S+) \[(?P<when>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>\S+) HTTP/[\d.]+" (?P<status>\d{3}) (?P<size>\d+|-) (?P<ms>\d+)ms')


class Hit(NamedTuple):
    ip: str
    user: str
    when: datetime
    method: str
    path: str
    status: int
    size: int
    ms: int


def make_log(lines, seed):
    rng, when = random.Random(seed), datetime(2024, 2, 29, 23, 50)
    paths = ["/", "/login", "/api/items", "/api/items/7", "/static/app.js", "/admin"]
    for n in range(lines):
        when += timedelta(seconds=rng.choice([1, 2, 5, 30, 600 if n % 40 == 39 else 3]))
        path = rng.choices(paths, [5, 2, 6, 3, 8, 1])[0]
        status = 403 if path == "/admin" else rng.choices([200, 304, 404, 500], [80, 10, 6, 4])[0]
        yield f'10.0.0.{rng.randrange(1, 6)} - {rng.choice(["ann", "bob", "-"])} [{when:%Y-%m-%dT%H:%M:%S}] "{rng.choice(["GET", "GET", "POST"])} {path} HTTP/1.1" {status} {rng.randrange(100, 9000) if status == 200 else "-"} {int(rng.triangular(3, 400, 20))}ms'
        if n % 50 == 7:
            yield "### rotated or corrupt line ###"


def parse(lines):
    for number, line in enumerate(lines, 1):
        if m := PATTERN.fullmatch(line):
            yield Hit(m["ip"], m["user"], datetime.fromisoformat(m["when"]), m["method"], m["path"], int(m["status"]), 0 if m["size"] == "-" else int(m["size"]), int(m["ms"]))
        else:
            bad.append(number)


def percentile(values, p):
    values = sorted(values)
    position = (len(values) - 1) * p
    low = int(position)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (position - low)


bad = []
hits = list(parse(make_log(200, seed=7)))
print(f"{len(hits)} hits, {len(bad)} bad lines at {bad}, {hits[0].when} to {hits[-1].when}")
print("status:", sorted(Counter(h.status for h in hits).items()), "bytes:", sum(h.size for h in hits))
print(f"{'path':<16}{'n':>4}{'err%':>7}{'p50':>7}{'p95':>8}")
for path, group in groupby(sorted(hits, key=lambda h: h.path), key=lambda h: h.path):
    group = list(group)
    times = [h.ms for h in group]
    print(f"{path:<16}{len(group):>4}{100 * sum(h.status >= 400 for h in group) / len(group):>7.1f}{percentile(times, 0.5):>7.1f}{percentile(times, 0.95):>8.2f}")


def sessions(hits, gap=timedelta(minutes=5)):
    current = {}
    for hit in hits:
        last = current.get(hit.ip)
        if last and hit.when - last[-1].when <= gap:
            last.append(hit)
        else:
            if last:
                yield last
            current[hit.ip] = [hit]
    yield from current.values()


found = list(sessions(hits))
print("sessions:", len(found), "longest:", max(len(s) for s in found), "bounces:", sum(len(s) == 1 for s in found))
window, burst, worst = deque(), 0, None
for hit in hits:
    window.append(hit.when)
    while hit.when - window[0] > timedelta(seconds=30):
        window.popleft()
    if len(window) > burst:
        burst, worst = len(window), hit.when
print("busiest 30 s:", burst, "ending", worst.time(), "| per minute:", Counter(h.when.strftime("%H:%M") for h in hits).most_common(3))
print("transitions:", Counter((a.path, b.path) for s in found for a, b in pairwise(s)).most_common(2))

DOCUMENTS = {
    "sandbox": "A sandbox runs code that nobody has read. The sandbox gives the code no files, no network and no secrets. Code in a sandbox may fail; the host must not.",
    "kitchen": "A cook reads the recipe before the oven is hot. Good bread needs flour, water, salt and time. The oven must not be opened too early.",
    "harbour": "Ships wait outside the harbour until the tide is high. The harbour master reads the weather, and no ship moves without his word.",
}
STOP = set("a an the of and is in no not to be that has his it its may must before until without".split())


def words(text):
    return re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower())


def syllables(word):
    return max(1, len(re.findall(r"[aeiouy]+", re.sub(r"e$", "", word))))


terms = {name: Counter(w for w in words(text) if w not in STOP) for name, text in DOCUMENTS.items()}
frequency = Counter(w for counts in terms.values() for w in counts)
weights = {name: {w: n / counts.total() * math.log(len(DOCUMENTS) / frequency[w]) for w, n in counts.items()} for name, counts in terms.items()}
for name, text in DOCUMENTS.items():
    tokens, sentences = words(text), re.findall(r"[^.!?;]+[.!?;]", text)
    ease = 206.835 - 1.015 * len(tokens) / len(sentences) - 84.6 * sum(map(syllables, tokens)) / len(tokens)
    top = sorted(weights[name].items(), key=lambda item: (-round(item[1], 9), item[0]))[:3]
    print(f"{name:8} {len(tokens)} words, {len(set(tokens)) / len(tokens):.3f} distinct, ease {ease:.2f},", [f"{w} {v:.4f}" for w, v in top])


def cosine(a, b):
    dot = math.fsum(a[w] * b.get(w, 0) for w in a)
    return dot / math.sqrt(math.fsum(v * v for v in a.values()) * math.fsum(v * v for v in b.values()))


print({f"{a}-{b}": round(cosine(terms[a], terms[b]), 6) for a, b in pairwise(terms)})
query = Counter(words("who reads the recipe near the harbour"))
print("search:", sorted(((round(sum(weights[n].get(w, 0) for w in query), 6), n) for n in DOCUMENTS), reverse=True))
index = defaultdict(set)
for name, text in DOCUMENTS.items():
    for w in words(text):
        index[w].add(name)
print("index:", {w: sorted(index[w]) for w in ("reads", "must", "oven")}, "both:", sorted(index["no"] & index["the"]))

chain = defaultdict(list)
for text in DOCUMENTS.values():
    for a, b in pairwise(words(text)):
        chain[a].append(b)
rng, word, sentence = random.Random(3), "the", ["the"]
while len(sentence) < 12 and chain[word]:
    word = rng.choice(chain[word])
    sentence.append(word)
print("markov:", " ".join(sentence))


def shingles(text, n=3):
    tokens = words(text)
    return {" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}


def signature(items, size=16):
    return [min(int(hashlib.md5(f"{seed}:{item}".encode()).hexdigest()[:8], 16) for item in items) for seed in range(size)]


original, edited = shingles(DOCUMENTS["sandbox"]), shingles(DOCUMENTS["sandbox"].replace("secrets", "keys"))
estimate = sum(a == b for a, b in zip(signature(original), signature(edited))) / 16
print(f"jaccard {len(original & edited) / len(original | edited):.4f} estimated {estimate:.4f}")
print("bigrams:", Counter(pairwise(words(" ".join(DOCUMENTS.values())))).most_common(2), "letters:", Counter(c for t in DOCUMENTS.values() for c in t.lower() if c.isalpha()).most_common(5))
