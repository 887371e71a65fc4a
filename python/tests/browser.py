"""A browser, and a server that notes what it is asked for."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
]

# The longest time that a page may take.
LONGEST = 100


class Seen:
    """A server that notes what it is asked for, and each connection."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.asked = threading.Condition()
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
                    with seen.asked:
                        seen.paths.append(self.path)
                        seen.asked.notify_all()
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

    def wait_for(self, paths: set[str]) -> None:
        """Waits until each of the paths was asked for."""
        with self.asked:
            self.asked.wait_for(lambda: paths <= set(self.paths), LONGEST)
        assert paths <= set(self.paths)


def visit(address: str, profile: object) -> str:
    """Opens a page, and waits until it has had its time, of which none passes while it idles.

    Returns the page as it is then.
    """
    assert BROWSER is not None
    flags = [*FLAGS, "--virtual-time-budget=8000", f"--user-data-dir={profile}", "--dump-dom"]
    ran = subprocess.run(
        [BROWSER, *flags, address], check=True, capture_output=True, timeout=LONGEST, text=True
    )
    return ran.stdout


def look_at(address: str, profile: object, server: Seen, paths: set[str]) -> None:
    """Opens a page, and leaves it once it has asked a server for each of the paths.

    Unlike `visit`, it needs no end of loading, which with Chromium 156 may never come if a policy
    forbids a picture that an SVG names.
    """
    assert BROWSER is not None
    flags = [*FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    browser = subprocess.Popen(
        [BROWSER, *flags, address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        server.wait_for(paths)
    finally:
        # With all processes that it has started.
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait(LONGEST)
