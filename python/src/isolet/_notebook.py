"""How results look in a notebook. What the guest wrote never becomes part of the page itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ._inert import inert

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .execution import Display

_PICTURES = ("image/png", "image/jpeg", "image/svg+xml")


def bundle(displays: Iterable[Display], output: str, last: str, text: str) -> dict[str, str]:
    """Returns the formats of a result: its output, its displays, and a last text.

    Without displays there is only the text, as of any object.
    """
    shown = [_display(display) for display in displays]
    if not shown:
        return {"text/plain": inert(text)}
    page = "\n".join([_pre(output), *shown, _pre(last)]).strip()
    return {"text/plain": inert(text), "text/html": page}


def _display(display: Display) -> str:
    for mime in _PICTURES:
        data = display.data.get(mime)
        if data:
            # A browser runs no script of a picture.
            return f'<img src="data:{mime};base64,{_base64(data)}">'
    page = display.data.get("text/html")
    if isinstance(page, str):
        return _frame(page)
    for mime in ("text/markdown", "text/latex", "text/plain"):
        text = display.data.get(mime)
        if isinstance(text, str):
            return _pre(text)
    return _pre(f"<{', '.join(display.data)}>")


# Nothing is loaded but what is in the page itself. A guest without a network could otherwise send
# something when its result is looked at.
_POLICY = (
    "default-src 'none'; img-src data:; media-src data:; font-src data:; "
    "style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
)
_HEAD = (
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    '<meta http-equiv="x-dns-prefetch-control" content="off">'
)
# Elements that reach other hosts beside that policy, by connections and names that are looked up in
# advance, and links, which could only leave. A browser knows an element by these very characters.
_REACHING = re.compile(
    "<(?=/?(?:link|meta|base|a|area|i?frame|frameset|fencedframe|portal)(?![a-z0-9-]))",
    re.IGNORECASE,
)
_STYLE = "width: 100%; height: 22em; border: 0; background: white"


def _frame(page: str) -> str:
    # HTML comes from the guest. In a frame with an empty `sandbox` it runs no scripts and reaches
    # nothing of the notebook. The policy of the outer frame is that of the inner one, whatever the
    # page says, and also forbids that a click takes the inner one elsewhere.
    import html

    inner = _HEAD + _REACHING.sub("<x-", page)
    style = "position: fixed; inset: 0; width: 100%; height: 100%; border: 0"
    outer = f'{_HEAD}<iframe sandbox="" style="{style}" srcdoc="{html.escape(inner)}"></iframe>'
    return f'<iframe sandbox="" style="{_STYLE}" srcdoc="{html.escape(outer)}"></iframe>'


def _base64(data: str | bytes) -> str:
    import base64

    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def _pre(text: str) -> str:
    import html

    return f"<pre>{html.escape(text)}</pre>" if text else ""
