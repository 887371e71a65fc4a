"""How results look in a notebook, and that nothing of the guest's becomes part of it."""

from __future__ import annotations

import base64

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


def test_pages_of_the_guest_run_no_scripts() -> None:
    for mime in ("text/html", "image/svg+xml", "text/markdown", "text/latex", "text/plain"):
        html = shown(displays=[{"data": {mime: SCRIPT}, "is_result": False}])["text/html"]
        assert "<script" not in html
    page = shown(displays=[{"data": {"text/html": f'"{SCRIPT}'}, "is_result": False}])["text/html"]
    assert page.startswith('<iframe sandbox="" ')
    assert "&quot;&lt;script&gt;" in page
    html = shown(stdout=SCRIPT, displays=[{"data": {SCRIPT: "x"}}])["text/html"]
    assert "<script" not in html


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
