"""How results look in a notebook, and that nothing of the guest's becomes part of it."""

from __future__ import annotations

import base64
import html

import isolet

PNG = b"\x89PNG\r\n\x1a\n"
SCRIPT = "<script>alert(1)</script>"


def shown(**fields: object) -> dict[str, str]:
    execution = isolet.Execution({"status": "completed", **fields})
    return execution._repr_mimebundle_()


def test_a_result_without_displays_is_text() -> None:
    assert shown(stdout="out\n", value=5, repr="5") == {"text/plain": "out\n5"}


def test_pictures_are_shown_between_the_output_and_the_value() -> None:
    bundle = shown(
        stdout="a < b\n",
        value=5,
        repr="5",
        displays=[{"data": {"image/png": PNG, "text/plain": "<Figure>"}, "is_result": False}],
    )
    assert bundle["text/html"].splitlines() == [
        "<pre>a &lt; b",
        "</pre>",
        f'<img src="data:image/png;base64,{base64.b64encode(PNG).decode()}">',
        "<pre>5</pre>",
    ]


def test_a_value_with_a_display_is_shown_once() -> None:
    bundle = shown(
        value=None,
        value_error="a table cannot cross",
        repr="   a\n0  1",
        displays=[{"data": {"text/html": "<table>", "text/plain": "t"}, "is_result": True}],
    )
    assert bundle["text/html"].count("<iframe") == 1
    assert "<pre>" not in bundle["text/html"]


def framed(page: str) -> str:
    """What the inner of two frames shows."""
    outer = page.partition('srcdoc="')[2].partition('"')[0]
    inner = html.unescape(outer).partition('srcdoc="')[2].partition('"')[0]
    return html.unescape(inner)


def test_a_page_of_the_guest_begins_with_a_policy_that_it_cannot_change() -> None:
    page = "</head></html>\"'><meta http-equiv=refresh content=0><LINK rel=x><base href=x><links>"
    page += "<iFrame/srcdoc=x><a\nhref=x><a><frame><abbr>"
    bundle = shown(displays=[{"data": {"text/html": page}, "is_result": False}])
    inner = framed(bundle["text/html"])
    policy = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    outer = html.unescape(bundle["text/html"].partition('srcdoc="')[2])
    assert inner.startswith(policy)
    assert outer.startswith(policy)
    rest = inner.partition("</head>")[2].lower()
    names = ("meta", "link ", "base", "iframe", "frame", "a>", "a\n")
    assert not any(f"<{name}" in rest for name in names), rest
    assert "<links>" in rest
    assert "<abbr>" in rest


def test_pages_of_the_guest_run_no_scripts() -> None:
    for mime in ("text/html", "image/svg+xml", "text/markdown", "text/latex", "text/plain"):
        page = shown(displays=[{"data": {mime: SCRIPT}, "is_result": False}])["text/html"]
        assert "<script" not in page
    page = shown(displays=[{"data": {"text/html": f'"{SCRIPT}'}, "is_result": False}])["text/html"]
    assert page.startswith('<iframe sandbox="" ')
    assert f'"{SCRIPT}' in framed(page)
    page = shown(stdout=SCRIPT, displays=[{"data": {SCRIPT: "x"}}])["text/html"]
    assert "<script" not in page


def test_text_of_the_guest_does_not_act_on_a_terminal() -> None:
    text = "a\x1b[2J\x9b\u202e\r\n\tb\u00e9"
    fields = {"type": "Odd", "message": text, "args": None, "traceback": text}
    execution = isolet.Execution({"status": "raised", "stdout": text, "exception": fields})
    plain = execution._repr_mimebundle_()["text/plain"]
    error = isolet.GuestError(execution)
    notes = "".join(getattr(error, "__notes__", ()))
    for shown in (plain, str(error), notes):
        assert not set("\x1b\x9b\u202e\r") & set(shown)
    assert str(error) == "Odd: a\\x1b[2J\\x9b\\u202e\n\tb\u00e9"
    assert execution.stdout == text


def test_the_traceback_of_a_run_that_failed_is_shown() -> None:
    error = {"type": "ValueError", "message": "bad", "traceback": "Traceback\nValueError: bad\n"}
    bundle = shown(
        status="raised",
        exception=error,
        displays=[{"data": {"image/png": PNG}, "is_result": False}],
    )
    assert "ValueError: bad" in bundle["text/html"]
    assert "ValueError: bad" in bundle["text/plain"]


def test_a_display_shows_itself() -> None:
    bundle = isolet.Display({"image/png": PNG})._repr_mimebundle_()
    assert bundle["text/html"].startswith('<img src="data:image/png;base64,')
