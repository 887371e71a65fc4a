"""The tasks: what a model does turn by turn with direct calls, and the programs it writes instead.

`direct` is a generator. It yields the calls of a turn, gets their results, and returns the answer.
Calls of one turn do not depend on each other. `program` gives the same answer as its value. `look`
is what a careful model runs before, to see the shape of a result; `query` is what it searches for.
"""

import json
import re
from dataclasses import dataclass, field

import data


@dataclass
class Call:
    server: str
    tool: str
    arguments: dict
    # Whether the user is asked first.
    asks: bool = False


@dataclass
class Task:
    name: str
    what: str
    servers: list
    direct: object
    program: str
    query: str = ""
    look: str = ""
    # The functions that a search has to find.
    functions: list = field(default_factory=list)
    is_small: bool = False


def text(result):
    return result["content"][0]["text"]


def parsed(result):
    return json.loads(text(result))


def fan_out():
    call = [Call("github", "get_issue", {**data.REPOSITORY, "issue_number": number})
            for number in range(1, 31)]
    issues = [parsed(result) for result in (yield call)]
    bugs = [issue for issue in issues if issue["state"] == "open"
            and any(label["name"] == "bug" for label in issue["labels"])]
    return [[issue["number"] for issue in bugs], sum(issue["comments"] for issue in bugs)]


FAN_OUT = """\
import asyncio
import github

issues = await asyncio.gather(*[
    github.get_issue(owner="acme", repo="shop", issue_number=number) for number in range(1, 31)
])
bugs = [issue for issue in issues if issue["state"] == "open"
        and any(label["name"] == "bug" for label in issue["labels"])]
[issue["number"] for issue in bugs], sum(issue["comments"] for issue in bugs)
"""


def join():
    issues, users = yield [
        Call("github", "list_issues", {**data.REPOSITORY, "state": "all", "per_page": 30}),
        Call("slack", "slack_get_users", {"limit": 200}),
    ]
    names = {member["name"]: member["real_name"] for member in parsed(users)["members"]}
    counts = {}
    for issue in parsed(issues):
        name = names[issue["assignee"]["login"]]
        counts[name] = counts.get(name, 0) + 1
    return sorted([count, name] for name, count in counts.items())[-5:]


JOIN = """\
import collections
import github, slack

issues = github.list_issues(owner="acme", repo="shop", state="all", per_page=30)
members = slack.slack_get_users(limit=200)["members"]
names = {member["name"]: member["real_name"] for member in members}
counts = collections.Counter(names[issue["assignee"]["login"]] for issue in issues)
sorted([count, name] for name, count in counts.items())[-5:]
"""


def pages():
    found, cursor = [], None
    while True:
        arguments = {"query": "", "page_size": 10}
        if cursor:
            arguments["start_cursor"] = cursor
        [result] = yield [Call("notion", "API-post-search", arguments)]
        listed = parsed(result)
        found += [page["id"][:8] for page in listed["results"]
                  if page["archived"] and page["last_edited_time"] < "2024"]
        cursor = listed["next_cursor"]
        if not cursor:
            return found


PAGES = """\
import notion

found, more = [], {}
while True:
    listed = notion.api_post_search(query="", page_size=10, **more)
    found += [page["id"][:8] for page in listed["results"]
              if page["archived"] and page["last_edited_time"] < "2024"]
    if not listed["next_cursor"]:
        break
    more = {"start_cursor": listed["next_cursor"]}
found
"""

ORDERS = {"connectionId": "preconfigured", "database": "shop", "collection": "orders"}


def rows():
    [result] = yield [Call("mongodb", "find", {**ORDERS, "limit": data.ROWS})]
    return [list(item) for item in data.best(parsed(result))]


ROWS = """\
import collections
import mongodb

found = mongodb.find(connectionId="preconfigured", database="shop", collection="orders",
                     limit=10000)
totals = collections.Counter()
for row in found["documents"]:
    if row["paid"]:
        totals[row["customer"]] += row["cents"]
sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:5]
"""


def retry():
    call = Call("firecrawl", "firecrawl_scrape",
                {"url": "https://shop.example.com/prices", "formats": ["markdown"]})
    for _ in range(3):
        [result] = yield [call]
        if not result.get("isError"):
            return parsed(result)
    return None


RETRY = """\
import firecrawl

for attempt in range(3):
    try:
        page = firecrawl.firecrawl_scrape(url="https://shop.example.com/prices",
                                          formats=["markdown"])
        break
    except ToolError as error:
        print(error)
page
"""

MESSAGE = "Release 4.2 is out: see the notes for what has changed."


def write():
    [result] = yield [Call("slack", "slack_list_channels", {"limit": 200})]
    [channel] = [one for one in parsed(result)["channels"] if one["name"] == "releases"]
    arguments = {"channel_id": channel["id"], "text": MESSAGE}
    [result] = yield [Call("slack", "slack_post_message", arguments, asks=True)]
    return parsed(result)["ts"]


WRITE = f"""\
import slack

channels = slack.slack_list_channels(limit=200)["channels"]
channel = next(one for one in channels if one["name"] == "releases")
slack.slack_post_message(channel_id=channel["id"],
                         text="{MESSAGE}")["ts"]
"""


def image():
    [result] = yield [Call("playwright", "browser_take_screenshot", {"scale": "css"})]
    # The answer is the picture itself, which is compared.
    return [block["data"] for block in result["content"] if block["type"] == "image"]


IMAGE = """\
import playwright

shot = playwright.browser_take_screenshot(scale="css")
display({shot["mime"]: shot["data"]}, raw=True)
"""

LOG_LINE = r"GET (/\w+)/\d+ 50\d (\d+)ms"


def long_file():
    [result] = yield [Call("filesystem", "read_text_file", {"path": "/var/log/shop.log"})]
    return slowest(re.findall(LOG_LINE, text(result)))


def slowest(failures):
    return [len(failures), sorted((int(took), path) for path, took in failures)[-1][1]]


LONG_FILE = f"""\
import re
import filesystem

log = filesystem.read_text_file(path="/var/log/shop.log")["content"]
failures = re.findall(r"{LOG_LINE}", log)
len(failures), max((int(took), path) for path, took in failures)[1]
"""


def one_call():
    address = {"address": "Stephansplatz 1, Vienna"}
    [result] = yield [Call("google-maps", "maps_geocode", address)]
    return parsed(result)


ONE_CALL = """\
import google_maps

google_maps.maps_geocode(address="Stephansplatz 1, Vienna")
"""

PIPELINE = [
    {"$match": {"paid": True}},
    {"$group": {"_id": "$customer", "cents": {"$sum": "$cents"}}},
    {"$sort": {"cents": -1}},
    {"$limit": 5},
]


def aggregate():
    [result] = yield [Call("mongodb", "aggregate", {**ORDERS, "pipeline": PIPELINE})]
    return parsed(result)


AGGREGATE = """\
import mongodb

mongodb.aggregate(connectionId="preconfigured", database="shop", collection="orders", pipeline=[
    {"$match": {"paid": True}},
    {"$group": {"_id": "$customer", "cents": {"$sum": "$cents"}}},
    {"$sort": {"cents": -1}},
    {"$limit": 5},
])["documents"]
"""

TASKS = [
    Task("fan-out", "30 issues, one call each; those that are open bugs", ["github"],
         fan_out, FAN_OUT, "get issue", functions=["get_issue"],
         look="import github\n"
              'github.get_issue(owner="acme", repo="shop", issue_number=1)'),
    Task("join", "issues of one server with the people of another", ["github", "slack"],
         join, JOIN, "list issues, list users", functions=["list_issues", "slack_get_users"],
         look="import github, slack\n"
              'print(github.list_issues(owner="acme", repo="shop", per_page=30)[0])\n'
              'slack.slack_get_users(limit=1)["members"][0]'),
    Task("pages", "20 pages of a list, each named by the one before", ["notion"],
         pages, PAGES, "search pages", functions=["api_post_search"],
         look="import notion\n"
              'notion.api_post_search(query="", page_size=1)["results"][0]'),
    Task("rows", "10,000 rows of a database, to the best five customers", ["mongodb"],
         rows, ROWS, "find documents in a collection", functions=["find"],
         look="import mongodb\n"
              'mongodb.find(connectionId="preconfigured", database="shop", collection="orders",\n'
              "             limit=1)"),
    Task("retry", "a call that fails the first time", ["firecrawl"],
         retry, RETRY, "scrape a page", functions=["firecrawl_scrape"]),
    Task("write", "a search and a message, after the user's approval", ["slack"],
         write, WRITE, "list channels, post message",
         functions=["slack_list_channels", "slack_post_message"],
         look="import slack\nslack.slack_list_channels(limit=1)"),
    Task("image", "a screenshot that the model looks at", ["playwright"],
         image, IMAGE, "take a screenshot", functions=["browser_take_screenshot"]),
    Task("file", "a log of 3,000 lines; its failures and the slowest", ["filesystem"],
         long_file, LONG_FILE, "read a text file", functions=["read_text_file"],
         look="import filesystem\n"
              'filesystem.read_text_file(path="/var/log/shop.log", head=3)["content"][:300]'),
    Task("one call", "the place of an address", ["google-maps"],
         one_call, ONE_CALL, "geocode an address", functions=["maps_geocode"], is_small=True),
    Task("aggregate", "`rows`, by a query that the database reduces", ["mongodb"],
         aggregate, AGGREGATE, "aggregate documents of a collection", functions=["aggregate"],
         is_small=True),
]
