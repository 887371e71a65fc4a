"""The page on which clients of `isolet mcp` show displays, in a browser.

What it draws of a guest's data, and that it asks no server for anything.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, Seen, visit

from isolet._find import find_binary

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg"
    "gg=="
)
AXES = {"x_label": "x", "y_label": "y", "x_scale": "linear", "y_scale": "linear"}
SERIES = [{"label": "a", "points": [[0, 1], [1, None], [2, 3]]}, {"label": "b", "points": [[0, 2]]}]
BAR = {"label": "l", "group": "g", "value": -2}
BOX = {"label": "b", "min": 0, "first_quartile": 1, "median": 2, "third_quartile": 3, "max": 4}
PARTS = [{"label": "p", "angle": 90, "radius": 1}, {"label": "q", "angle": 270, "radius": 1}]
CHARTS: list[dict[str, Any]] = [
    {"type": "line", "title": "line", **AXES, "elements": SERIES},
    {"type": "scatter", "title": "scatter", **AXES, "elements": SERIES},
    {"type": "bar", "title": "bar", **AXES, "elements": [BAR, BAR]},
    {"type": "bar", "title": "across", "orientation": "horizontal", **AXES, "elements": [BAR]},
    {"type": "pie", "title": "pie", "elements": PARTS},
    {"type": "box_and_whisker", "title": "box", **AXES, "elements": [{**BOX, "outliers": [9]}]},
]

# What the host of the page does: it passes a result on, and notes what the page says. The browser
# waits for the frame if it is of the same origin, which a client's is not.
HOST = """<!doctype html><body><iframe sandbox="allow-scripts allow-same-origin"></iframe>
<pre></pre><script>
const frame = document.querySelector("iframe");
const said = [];
addEventListener("message", ({ data: { id, method, params } }) => {
  said.push({ method, params });
  document.querySelector("pre").textContent = JSON.stringify(said);
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  if (method === "ui/initialize") send({ id, result: { hostContext: { theme: "dark" } } });
  if (method !== "ui/notifications/initialized") return;
  send({ method: "ui/notifications/tool-input", params: {} });
  send({ method: "ui/notifications/tool-result", params: RESULT });
});
frame.srcdoc = PAGE;
</script>"""


def page_of_server() -> str:
    """The page, as a client reads it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"uri": "ui://isolet/displays.html", "_meta": meta}
    request = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
    command = [find_binary(), "mcp"]
    given = json.dumps(request) + "\n"
    ran = subprocess.run(
        command, check=True, input=given, capture_output=True, text=True, timeout=100
    )
    text: str = json.loads(ran.stdout)["result"]["contents"][0]["text"]
    return text


def in_script(value: object) -> str:
    return json.dumps(value).replace("</", "<\\/")


def host(page: str, result: dict[str, Any]) -> str:
    return HOST.replace("RESULT", in_script(result)).replace("PAGE", in_script(page))


def drawn(page: str, entries: list[Any]) -> str:
    """The page with a result that it has in itself, so that what it draws can be read."""
    images = [{"type": "image", "mimeType": "image/png", "data": PNG}]
    result = {"content": images, "_meta": {"isolet/displays": {"entries": entries, "left_out": 2}}}
    return page.replace("</script>", f"show({in_script(result)});</script>")


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to look at the page with")
@pytest.mark.timeout(240)
def test_the_page_draws_charts_tables_and_pictures(seen: Seen, tmp_path: Path) -> None:
    page = page_of_server()
    entries: list[Any] = [{"chart": chart} for chart in CHARTS]
    entries.append({"chart": {"type": "superchart", "title": "two", "elements": CHARTS[:2]}})
    entries.append({"table": {"n": [2, 1], "text": ["<b>x</b>", None]}})
    entries.append({"chart": {"type": "unknown", "elements": []}, "image": 0})
    seen.pages["/drawn"] = drawn(page, entries)
    shown = visit(f"{seen.at}/drawn", f"{tmp_path}/drawn").split("<script>")[0]
    titles = re.findall("<figcaption>(.*?)</figcaption>", shown)
    assert titles == [*(chart["title"] for chart in CHARTS), "two", "line", "scatter"]
    # A line of three points with a hole, twice; the whiskers and the median of a box.
    paths = re.findall(r'class="series" d="([^"]*)"', shown)
    assert len(paths) == 6
    assert paths[0].count("M") == 2
    assert shown.count("<rect") == 4
    bars = re.findall(r'<rect x="([^"]*)"', shown)
    assert bars[0] != bars[1]
    assert "<td>2</td><td>&lt;b&gt;x&lt;/b&gt;</td>" in shown
    assert f'<img src="data:image/png;base64,{PNG}"' in shown
    assert "2 more, which are too large to be shown here" in shown


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to look at the page with")
@pytest.mark.timeout(240)
def test_the_page_speaks_with_its_host_and_asks_no_server(seen: Seen, tmp_path: Path) -> None:
    # Elsewhere than the page's server, which the browser asks for the page itself.
    other = Seen()
    evil = f'<img src="{other.at}/img" onerror="fetch(`{other.at}/fetch`)">'
    url = f"url({other.at}/css)"
    hostile: list[Any] = [
        {"chart": {**chart, "title": evil, "x_label": evil, "x_scale": evil}} for chart in CHARTS
    ]
    for value in (evil, url, {"toString": evil}, [evil], None, True, 1e308, -1):
        element = {"label": evil, "group": evil, "value": value, "points": [[value, value]]}
        element |= {"angle": value, "min": value, "median": value, "outliers": [value]}
        for kind in ("line", "scatter", "bar", "pie", "box_and_whisker", "superchart"):
            hostile.append({"chart": {"type": kind, "elements": [element]}})
            hostile.append({"chart": {"type": kind, "elements": value}})
        hostile.append({"table": {evil: [value, evil], "__proto__": [value]}})
        hostile.append({"table": value})
        hostile.append(value)
    hostile += [{"image": at} for at in range(4)]
    content = [
        {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zy8+"},
        {"type": "image", "mimeType": "image/png", "data": f'" onerror="{evil}'},
        {"type": "image", "mimeType": f"image/png,{evil}", "data": PNG},
        {"type": "text", "text": evil},
    ]
    result = {"content": content, "_meta": {"isolet/displays": {"entries": hostile}}}
    seen.pages["/host"] = host(page_of_server(), result)
    shown = visit(f"{seen.at}/host", f"{tmp_path}/host")
    said = json.loads(re.findall("<pre>(.*?)</pre>", shown)[0])
    begun = [each["method"] for each in said[:2]]
    assert begun == ["ui/initialize", "ui/notifications/initialized"]
    sizes = [each["params"]["height"] for each in said[2:]]
    assert {each["method"] for each in said[2:]} == {"ui/notifications/size-changed"}
    # It has drawn what there was to draw.
    assert sizes[-1] > 1000
    assert other.paths == []
    assert other.connections == []
    # The same as a page, to show that the server sees what there is to see.
    seen.pages["/raw"] = f"<!doctype html>{evil}"
    visit(f"{seen.at}/raw", f"{tmp_path}/raw")
    assert "/img" in other.paths
    other.server.shutdown()
    other.server.server_close()
