"""json: encoding options, custom encoders and decoders, hooks, edge values, errors with positions, streaming, round trips."""
import collections
import dataclasses
import datetime
import decimal
import enum
import io
import json

sample = {"b": [1, 2.5, None, True], "a": {"é": "ü\n\"\\/\u2028😀"}, "c": (1, [], {}), "n": -0.0, "big": 10**25, "e": 1e-7}
text = json.dumps(sample)
print(text)
print(json.dumps(sample, ensure_ascii=False, sort_keys=True, separators=(",", ":")))
print(json.dumps({"x": [1, {"y": []}], "z": {}}, indent=2), json.dumps([1, [2]], indent="--"), json.dumps([], indent=4))
back = json.loads(text)
print(back == {**sample, "c": [1, [], {}]}, back["big"], type(back["c"]).__name__, list(back))
print([json.loads(t) for t in ("3", "-0", "1E2", "1.0", '"\\u0041\\ud83d\\ude00\\t"', "null", " [ 1 , 2 ] ", '{"a":1,"a":2}', b'"bytes \xc3\xa9"', "NaN", "-Infinity")][:-2], json.loads("1" * 30))
print(json.dumps([float("nan"), float("inf"), 1e22, 1.0, 0.1, 123456789.123]), json.dumps({1: "a", None: "b", True: "c", 2.5: "d"}), json.dumps("\x00\x7f\ud800"), json.dumps({"k": 1, (1, 2): 2}, skipkeys=True))

for bad in ("", "{", "{'a': 1}", "tru", '"\x01"', "[1] 2", '{"a" 1}', '"\\x"', "01", "\ufeff1", '["\\ud800"'):
    try:
        json.loads(bad)
        print(repr(bad), "accepted")
    except json.JSONDecodeError as error:
        print(f"{bad!a} at {error.pos} line {error.lineno} column {error.colno};", end=" ")
print()
for bad in (lambda: json.dumps({1, 2}), lambda: json.dumps({(1,): 2}), lambda: json.dumps(float("nan"), allow_nan=False), lambda: json.dumps(b"x"), lambda: json.loads(3), lambda: json.dumps(1j)):
    try:
        bad()
    except (TypeError, ValueError) as error:
        print(type(error).__name__, end=" ")
loop = []
loop.append(loop)
try:
    json.dumps(loop)
except ValueError as error:
    print(type(error).__name__)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Event:
    name: str
    when: datetime.datetime
    tags: set = dataclasses.field(default_factory=set)
    colour: Colour = Colour.RED


class Encoder(json.JSONEncoder):
    def default(self, value):
        match value:
            case datetime.datetime() | datetime.date():
                return {"$date": value.isoformat()}
            case set() | frozenset():
                return sorted(value)
            case decimal.Decimal():
                return {"$decimal": str(value)}
            case enum.Enum():
                return value.name
            case _ if dataclasses.is_dataclass(value):
                return {"$type": type(value).__name__, **{f.name: getattr(value, f.name) for f in dataclasses.fields(value)}}
        return super().default(value)


event = Event("launch", datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc), {"b", "a"})
encoded = json.dumps([event, decimal.Decimal("1.10")], cls=Encoder)
print(encoded)


def hook(value):
    match value:
        case {"$date": text}:
            return datetime.datetime.fromisoformat(text)
        case {"$decimal": text}:
            return decimal.Decimal(text)
        case {"$type": "Event", **fields}:
            return Event(**{**fields, "tags": set(fields["tags"]), "colour": Colour[fields["colour"]]})
    return value


decoded = json.loads(encoded, object_hook=hook)
print(decoded[0] == event, decoded[1])
print(json.loads('{"a": 1, "b": 2, "a": 3}', object_pairs_hook=list), json.loads("[1.10, 2, NaN]", parse_float=decimal.Decimal, parse_int=str, parse_constant=lambda name: f"<{name}>"), type(json.loads("{}", object_pairs_hook=collections.OrderedDict)).__name__)
print(json.dumps({"t": object}, default=lambda o: f"<{o.__name__}>"), "".join(json.JSONEncoder(indent=None).iterencode([1, {"a": "b"}])))

stream = io.StringIO()
for record in ({"id": n, "sq": n * n} for n in range(3)):
    json.dump(record, stream)
    stream.write("\n")
stream.seek(0)
records = [json.loads(line) for line in stream]
print(records, sum(r["sq"] for r in records), json.load(io.BytesIO(b'{"from": "bytes"}')))
decoder, buffer, found = json.JSONDecoder(), '{"a": 1} [2, 3]  "four" 5', []
position = 0
while position < len(buffer):
    value, position = decoder.raw_decode(buffer, position)
    found.append(value)
    position += len(buffer[position:]) - len(buffer[position:].lstrip())
print(found)


def pointer(document, path):
    """RFC 6901 JSON pointers."""
    for part in path.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def flatten(value, prefix=""):
    if isinstance(value, dict) and value:
        return {k: v for key, item in value.items() for k, v in flatten(item, f"{prefix}.{key}" if prefix else key).items()}
    if isinstance(value, list) and value:
        return {k: v for index, item in enumerate(value) for k, v in flatten(item, f"{prefix}[{index}]").items()}
    return {prefix: value}


def merge(target, patch):
    """RFC 7386 merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


document = {"store": {"books": [{"title": "A", "price": 8}, {"title": "B/C", "price": 12}]}, "a/b": 1, "m~n": 2, "empty": []}
print(pointer(document, "/store/books/1/title"), pointer(document, "/a~1b"), pointer(document, "/m~0n"), pointer(document, "") is document)
print(flatten(document))
print(merge(document, {"store": {"books": "sold", "open": True}, "a/b": None, "m~n": {"deep": {"er": None}}}))
nested = value = []
for _ in range(50):
    value.append([])
    value = value[0]
print(json.loads(json.dumps(nested)) == nested, json.dumps(nested).count("["))
