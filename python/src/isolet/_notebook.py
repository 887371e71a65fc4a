"""How results look in a notebook. What the guest wrote never becomes part of the page itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        return {"text/plain": text}
    return {"text/plain": text, "text/html": "\n".join([_pre(output), *shown, _pre(last)]).strip()}


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


def _frame(page: str) -> str:
    # HTML comes from the guest. In a frame with an empty `sandbox` it runs no scripts and reaches
    # nothing of the notebook.
    import html

    style = "width: 100%; height: 22em; border: 0; background: white"
    return f'<iframe sandbox="" style="{style}" srcdoc="{html.escape(page)}"></iframe>'


def _base64(data: str | bytes) -> str:
    import base64

    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def _pre(text: str) -> str:
    import html

    return f"<pre>{html.escape(text)}</pre>" if text else ""
