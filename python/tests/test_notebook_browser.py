"""What a browser does with displays of a hostile guest: it asks no server for anything."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import isolet
from isolet._find import find_binary

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

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


class Seen:
    """A server that notes what it is asked for, and each connection."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.connections: list[object] = []
        self.pages: dict[str, str] = {}
        seen = self

        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                seen.connections.append(self.client_address)
                super().setup()

            def do_GET(self) -> None:
                page = seen.pages.get(self.path)
                if page is None:
                    seen.paths.append(self.path)
                self.send_response(404 if page is None else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write((page or "").encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.at = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    yield seen
    seen.server.shutdown()
    seen.server.server_close()


def visit(address: str, profile: object) -> None:
    """Opens a page, and waits until it has had its time, of which none passes while it idles."""
    assert BROWSER is not None
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
        "--disable-background-networking --disable-component-update --virtual-time-budget=8000"
    )
    command = [BROWSER, *flags.split(), f"--user-data-dir={profile}", "--dump-dom", address]
    subprocess.run(command, check=True, capture_output=True, timeout=100)


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
    other = Seen()
    pages = [page.replace("~", other.at) for page in HOSTILE]
    shown = [isolet.Display({"text/html": page})._repr_mimebundle_()["text/html"] for page in pages]
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{other.at}/in-svg"/></svg>'
    shown.append(isolet.Display({"image/svg+xml": svg})._repr_mimebundle_()["text/html"])
    seen.pages["/shown"] = "<!doctype html>" + "\n".join(shown)
    seen.pages["/raw"] = "<!doctype html>" + "\n".join(pages[:4])
    visit(f"{seen.at}/shown", f"{tmp_path}/shown")
    assert other.paths == []
    assert other.connections == []
    # What a notebook's file has of them.
    seen.pages["/saved"] = f"<!doctype html>{saved_outputs([*pages, svg], tmp_path)}"
    visit(f"{seen.at}/saved", f"{tmp_path}/saved")
    assert other.paths == []
    assert other.connections == []
    # The same without frames, to show that the server sees what there is to see.
    visit(f"{seen.at}/raw", f"{tmp_path}/raw")
    assert {"/img", "/css", "/style"} <= set(other.paths)
    other.server.shutdown()
    other.server.server_close()
