"""ipywidgets in a kernel whose output is trusted, and in one whose output is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import SECONDS, Kernel, isolet

VIEW = "application/vnd.jupyter.widget-view+json"

SLIDER = """
import ipywidgets
slider = ipywidgets.IntSlider(value=3)
slider.observe(lambda change: print("changed to", change["new"]), "value")
slider
"""


@pytest.fixture(scope="module")
def trusted() -> Iterator[Kernel]:
    isolet("jupyter", "install", "--name=trusted", "--", "--trust-output", "--with=ipywidgets")
    kernel = Kernel("trusted")
    yield kernel
    kernel.stop()


def test_a_widget_is_shown_and_hears_of_its_user(trusted: Kernel) -> None:
    answer, published = trusted.run(SLIDER)
    assert answer["status"] == "ok"
    opened = [content for kind, content in published if kind == "comm_open"]
    assert {content["target_name"] for content in opened} == {"jupyter.widget"}
    model = dict(published)["execute_result"]["data"][VIEW]["model_id"]
    assert opened[-1]["comm_id"] == model
    assert opened[-1]["data"]["state"]["value"] == 3
    update = {"method": "update", "state": {"value": 42}, "buffer_paths": []}
    message = trusted.client.session.msg("comm_msg", {"comm_id": model, "data": update})
    trusted.client.shell_channel.send(message)
    told = ""
    while "changed" not in told:
        told = trusted.client.get_iopub_msg(timeout=SECONDS)["content"].get("text", "")
    assert told == "changed to 42\n"
    assert trusted.value("slider.value") == "42"
    asked = trusted.client.comm_info("jupyter.widget")
    assert model in trusted.answer(asked)["comms"]


def test_output_goes_where_a_widget_takes_it(trusted: Kernel) -> None:
    code = "import ipywidgets\nplace = ipywidgets.Output()\nwith place: print('inside')"
    message = trusted.client.execute(code)
    _, published = trusted.take(message)
    states = [
        content["data"]["state"]["msg_id"]
        for kind, content in published
        if kind == "comm_msg" and "msg_id" in content["data"].get("state", {})
    ]
    assert states == [message, ""]
    kinds = [kind for kind, _ in published]
    assert kinds.index("stream") < len(kinds) - 1


def test_bytes_of_widgets_pass_in_both_directions(trusted: Kernel) -> None:
    code = """
import comm
got = []
one = comm.create_comm(target_name="a", data={"b": 1}, buffers=[b"out"])
one.on_msg(lambda message: got.append([bytes(each) for each in message["buffers"]]))
one.comm_id
"""
    message = trusted.client.execute(code)
    while True:
        published = trusted.client.get_iopub_msg(timeout=SECONDS)
        if published["msg_type"] == "comm_open":
            break
    assert [bytes(each) for each in published["buffers"]] == [b"out"]
    name = published["content"]["comm_id"]
    assert trusted.answer(message)["status"] == "ok"
    sent = trusted.client.session.msg("comm_msg", {"comm_id": name, "data": {}})
    trusted.client.session.send(
        trusted.client.shell_channel.socket, sent, buffers=[b"in", b"\x00\xff"]
    )
    assert trusted.value("got") == r"[[b'in', b'\x00\xff']]"


def test_widgets_have_no_front_end_unless_output_is_trusted() -> None:
    isolet("jupyter", "install", "--name=untrusted", "--", "--with=ipywidgets")
    kernel = Kernel("untrusted")
    try:
        answer, published = kernel.run(SLIDER)
        assert answer["status"] == "ok"
        assert {kind for kind, _ in published} == {"execute_result", "stream"}
        told = dict(published)
        assert list(told["execute_result"]["data"]) == ["text/plain"]
        assert "`isolet jupyter install -- --trust-output`" in told["stream"]["text"]
    finally:
        kernel.stop()
