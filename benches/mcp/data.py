"""What the stand-ins for servers answer: made up, always the same, in the shape of the real ones.

The texts are as the real servers send them: JSON, indented where they indent.
"""

import base64
import functools
import json
import random
import struct
import zlib

REPOSITORY = {"owner": "acme", "repo": "shop"}
USERS = 80
PAGES = 20
ROWS = 10_000
CALLS = {"failing": 0}


def random_for(*key):
    """Returns numbers that depend on nothing but the key."""
    return random.Random(":".join(map(str, key)))


def sentence(numbers, words):
    some = "the checkout page shows an old price after cart update when user has two coupons and"
    return " ".join(numbers.choice(some.split()) for _ in range(words)).capitalize() + "."


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def compact(value):
    return text(json.dumps(value, separators=(",", ":")))


def indented(value):
    return text(json.dumps(value, indent=2))


def issue(number):
    numbers = random_for("issue", number)
    user, assignee = numbers.randrange(USERS), numbers.randrange(USERS)
    labels = numbers.sample(["bug", "payment", "design", "docs", "mobile", "question"], 2)
    place = f"https://api.example.com/repos/{REPOSITORY['owner']}/{REPOSITORY['repo']}"
    return {
        "url": f"{place}/issues/{number}",
        "labels_url": f"{place}/issues/{number}/labels{{/name}}",
        "comments_url": f"{place}/issues/{number}/comments",
        "html_url": f"https://example.com/acme/shop/issues/{number}",
        "id": 2_000_000_000 + number,
        "node_id": f"I_kw{numbers.getrandbits(60):016x}",
        "number": number,
        "title": sentence(numbers, 7),
        "user": person(user),
        "labels": [{"id": len(name), "name": name, "color": "d73a4a"} for name in labels],
        "state": numbers.choice(["open", "open", "closed"]),
        "locked": False,
        "assignee": person(assignee),
        "comments": numbers.randrange(40),
        "created_at": f"2026-0{1 + number % 9}-11T09:00:00Z",
        "updated_at": f"2026-10-{1 + number % 28:02}T17:30:00Z",
        "body": "\n\n".join(sentence(numbers, 30) for _ in range(3)),
    }


def person(number):
    return {
        "login": f"user{number}",
        "id": 500 + number,
        "avatar_url": f"https://avatars.example.com/u/{500 + number}?v=4",
        "html_url": f"https://example.com/user{number}",
        "type": "User",
        "site_admin": False,
    }


def member(number):
    numbers = random_for("member", number)
    city = numbers.choice(["Vienna", "Nairobi", "Lyon", "Recife", "Osaka"])
    return {
        "id": f"U{number:08}",
        "team_id": "T00000001",
        "name": f"user{number}",
        "deleted": False,
        "real_name": f"Person {number} of {city}",
        "tz": numbers.choice(["Europe/Vienna", "Africa/Nairobi", "Asia/Tokyo"]),
        "profile": {"title": sentence(numbers, 3), "email": f"user{number}@example.com"},
    }


def page(number, position):
    numbers = random_for("page", number, position)
    return {
        "object": "page",
        "id": f"{numbers.getrandbits(128):032x}",
        "created_time": "2025-03-01T08:00:00.000Z",
        "last_edited_time": f"202{numbers.randrange(3, 7)}-05-{1 + numbers.randrange(28):02}",
        "archived": numbers.random() < 0.1,
        "parent": {"type": "workspace", "workspace": True},
        "properties": {"title": {"id": "title", "type": "title", "title": [
            {"type": "text", "plain_text": sentence(numbers, 5)}]}},
        "url": f"https://notes.example.com/{numbers.getrandbits(64):016x}",
    }


def search(start_cursor="", **_):
    at = int(start_cursor.removeprefix("cursor-") or 0)
    more = at + 1 < PAGES
    return {
        "object": "list",
        "results": [page(at, position) for position in range(10)],
        "has_more": more,
        "next_cursor": f"cursor-{at + 1}" if more else None,
    }


@functools.cache
def orders():
    numbers = random_for("orders")
    return [
        {
            "_id": {"$oid": f"{number:024x}"},
            "customer": f"customer{numbers.randrange(400):03}",
            "cents": numbers.randrange(500, 90_000),
            "paid": numbers.random() < 0.9,
        }
        for number in range(ROWS)
    ]


def best(rows):
    """Returns the five customers who paid most."""
    totals = {}
    for row in rows:
        if row["paid"]:
            totals[row["customer"]] = totals.get(row["customer"], 0) + row["cents"]
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:5]


def documents(listed):
    structured = {"documents": listed, "queryResultsCount": len(listed), "appliedLimits": []}
    return {**compact(listed), "structuredContent": structured}


@functools.cache
def log():
    numbers = random_for("log")
    lines = []
    for number in range(3_000):
        status = numbers.choices([200, 301, 404, 500, 503], [90, 4, 4, 1, 1])[0]
        path = numbers.choice(["/cart", "/checkout", "/search", "/login", "/item"])
        time = f"2026-11-0{1 + number // 600}T{number % 24:02}:{number % 60:02}:00Z"
        took = numbers.randrange(5, 900)
        lines.append(f"{time} web{number % 4} GET {path}/{number} {status} {took}ms")
    return "\n".join(lines)


@functools.cache
def screenshot():
    """Returns a picture of 1280 x 720 pixels with bars, as PNG."""
    width, height = 1280, 720
    row = b"\0" + b"".join(bytes([x // 5, 120, 255 - x // 5]) for x in range(width))

    def chunk(kind, content):
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + checksum

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(row * height)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


def scrape(arguments):
    # Each call that follows a failure succeeds, so that a task that tries twice sees both.
    CALLS["failing"] += 1
    if CALLS["failing"] % 2:
        return {**text("Request failed: 429 rate limit exceeded, try again"), "isError": True}
    content = {"markdown": "# Prices\n\nBasic: 9 EUR\nTeam: 29 EUR\n",
               "metadata": {"sourceURL": arguments["url"], "statusCode": 200}}
    return indented(content)


def channels():
    names = ["general", "random", "releases", "support", "design"]
    listed = [
        {"id": f"C{number:08}", "name": name, "is_archived": False, "num_members": 10 + number}
        for number, name in enumerate(names)
    ]
    return {"ok": True, "channels": listed, "response_metadata": {"next_cursor": ""}}


def posted(arguments):
    return {"ok": True, "channel": arguments["channel_id"], "ts": "1762502400.000100",
            "message": {"type": "message", "text": arguments["text"]}}


def place(arguments):
    return {"location": {"lat": 48.2082, "lng": 16.3738},
            "formatted_address": arguments["address"] + ", Austria", "place_id": "ChIJn8o2UZ4HbUcR"}


def github(name, arguments):
    if name == "get_issue":
        return indented(issue(arguments["issue_number"]))
    if name == "list_issues":
        return indented([issue(number) for number in range(1, 31)])
    return None


def slack(name, arguments):
    if name == "slack_get_users":
        listed = {"ok": True, "members": [member(number) for number in range(USERS)]}
        return compact(listed)
    if name == "slack_list_channels":
        return compact(channels())
    if name == "slack_post_message":
        return compact(posted(arguments))
    return None


def mongodb(name, arguments):
    if name == "find":
        return documents(orders()[:int(arguments.get("limit", 10))])
    if name == "aggregate":
        totals = [{"_id": customer, "cents": cents} for customer, cents in best(orders())]
        return documents(totals)
    return None


def answer(server, name, arguments):
    """Returns a function that makes the result of a call."""
    def result():
        known = None
        if server == "github":
            known = github(name, arguments)
        elif server == "slack":
            known = slack(name, arguments)
        elif server == "mongodb":
            known = mongodb(name, arguments)
        elif name == "API-post-search":
            known = compact(search(**arguments))
        elif name == "firecrawl_scrape":
            known = scrape(arguments)
        elif name == "maps_geocode":
            known = indented(place(arguments))
        elif name == "read_text_file":
            known = {**text(log()), "structuredContent": {"content": log()}}
        elif name == "browser_take_screenshot":
            image = {"type": "image", "mimeType": "image/png", "data": screenshot()}
            known = {"content": [image]}
        return known or {**text(f"{name} answers nothing here"), "isError": True}

    return result
