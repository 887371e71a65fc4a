"""What a browser does with displays of a hostile guest: it asks no server for anything."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from browser import BROWSER, Seen, look_at

import isolet
from isolet._find import find_binary

# Each asks the server `~` for something, if it is let.
HOSTILE = [
    '<img src="~/img"><img srcset="~/srcset 2x"><picture><source srcset="~/src"></picture>',
    '<style>@import "~/import"; body { background: url(~/css) }</style>',
    "<style>@font-face { font-family: f; src: url(~/font) } p { font: 9px f }</style><p>a</p>",
    '<p style="background: url(~/style); list-style: url(~/list)">a</p>',
    '<meta http-equiv="refresh" content="0; url=~/refresh">',
    '</head><head><meta http-equiv="Content-Security-Policy" content="img-src *"><img src="~/b">',
    '<meta http-equiv="x-dns-prefetch-control" content="on"><link rel="dns-prefetch" href="~/dns">',
    '<link rel="stylesheet" href="~/sheet"><link rel="prefetch" href="~/prefetch">',
    '<link rel="preload" as="image" href="~/preload"><link rel="modulepreload" href="~/m">',
    '<link rel="icon" href="~/icon"><link rel="manifest" href="~/manifest">',
    '<link rel="preconnect" href="~"><link\nrel="prerender" href="~/prerender">',
    '<iframe src="~/frame"></iframe><frame src="~/f"><embed src="~/embed">',
    '<object data="~/object"></object><applet code="~/applet"></applet>',
    '<video src="~/video" poster="~/poster" autoplay></video><audio src="~/a" autoplay></audio>',
    '<video><track default src="~/track"></video><input type="image" src="~/input" autofocus>',
    '<svg><image href="~/svg"/><use href="~/use#a"/><script href="~/s"/></svg>',
    '<svg><style>rect { fill: url(~/fill) }</style><rect width="9" height="9"/></svg>',
    '<base href="~/"><img src="relative"><table background="~/table"><tr><td>a</table>',
    '<body background="~/body"><form action="~/form" id="f"><button autofocus>a</button></form>',
    '<iframe srcdoc="<img src=~/nested><meta http-equiv=refresh content=0;url=~/n>"></iframe>',
    '<iframe srcdoc="&lt;link rel=preconnect href=~&gt;"></iframe><iframe src="~/alone"></iframe>',
    '<frameset><frame src="~/only"></frameset>',
    '<a href="~/link" ping="~/ping">a</a><map><area href="~/area"></map>',
    '<script src="~/script"></script><script>new Image().src = "~/new"</script>',
    '<script type="speculationrules">{"prefetch": [{"urls": ["~/rules"]}]}</script>',
    '<math href="~/math"><mtext>a</mtext></math><img src="x" onerror="fetch(`~/fetch`)">',
]

# What they ask for in a plain page: of each way to do so, one.
ASKED = {"/img", "/import", "/font", "/style", "/refresh", "/sheet", "/frame", "/object", "/new"}


def saved_outputs(pages: list[str], directory: Path) -> str:
    """What a notebook shows that has displayed these pages, and the last one as SVG."""
    code = f"for page in {pages!r}: display({{'text/html': page}}, raw=True)"
    code += f"\ndisplay({{'image/svg+xml': {pages[-1]!r}}}, raw=True)"
    cell = {"cell_type": "code", "source": code, "metadata": {}, "outputs": []}
    cell["execution_count"] = None
    notebook = directory / "n.ipynb"
    notebook.write_text(
        json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    command = [find_binary(), "run", str(notebook), "--output", str(notebook)]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    outputs = json.loads(notebook.read_text())["cells"][0]["outputs"]
    assert len(outputs) == len(pages) + 1
    assert not any("image/svg+xml" in output["data"] for output in outputs)
    return "\n".join("".join(output["data"]["text/html"]) for output in outputs)


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium to look at displays with")
@pytest.mark.timeout(240)
def test_a_display_of_the_guest_asks_no_server_for_anything(seen: Seen, tmp_path: Path) -> None:
    # Elsewhere than the page's server, which the browser asks for the page itself.
    other, control = Seen(), Seen()
    pages = [page.replace("~", other.at) for page in HOSTILE]
    shown = [isolet.Display({"text/html": page})._repr_mimebundle_()["text/html"] for page in pages]
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{other.at}/in-svg"/></svg>'
    shown.append(isolet.Display({"image/svg+xml": svg})._repr_mimebundle_()["text/html"])
    # The same without frames of isolet, later in the same page, shows that a server sees what there
    # is to see. Once that has asked for everything, the others have had their time.
    raw = [page.replace("~", control.at) for page in HOSTILE]
    for nth, page in enumerate(raw):
        seen.pages[f"/raw/{nth}"] = f"<!doctype html>{page}"
    beside = "\n".join(f'<iframe src="/raw/{nth}"></iframe>' for nth in range(len(raw)))
    seen.pages["/shown"] = "<!doctype html>" + "\n".join([*shown, beside])
    # What a notebook's file has of them.
    seen.pages["/saved"] = f"<!doctype html>{saved_outputs([*pages, svg], tmp_path)}\n{beside}"
    for path in ("/shown", "/saved"):
        control.paths.clear()
        look_at(f"{seen.at}{path}", f"{tmp_path}{path}", control, ASKED)
        assert other.paths == []
        assert other.connections == []
    for server in (other.server, control.server):
        server.shutdown()
        server.server_close()
