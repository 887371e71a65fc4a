"""Scripts of the shell, in sessions here and on a node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from node_process import serving

import isolet
from isolet.node import Client, Session


@pytest.fixture(scope="module", params=["here", "on a node"])
def scripted(request: pytest.FixtureRequest) -> Iterator[isolet.Session | Session]:
    if request.param == "here":
        with isolet.Sandbox() as sandbox, sandbox.session() as session:
            yield session
    else:
        with serving() as address, Client(address) as client, client.session() as session:
            yield session


def test_scripts_run_on_the_session_s_files(scripted: isolet.Session | Session) -> None:
    scripted.files.put("names.txt", b"b\na\nb\n")
    ran = scripted.sh("sort names.txt | uniq -c | sort -rn | head -1; cd /tmp; x=5")
    assert (ran.stdout.split(), ran.exit_code, ran.ok) == (["2", "b"], 0, True)
    ran = scripted.sh("pwd; echo $x $WHO $1; exit 3", inputs={"WHO": "me"}, argv=["arg"])
    assert (ran.stdout, ran.exit_code, ran.ok) == ("/tmp\n5 me arg\n", 3, False)
    assert scripted.eval("__import__('os').getcwd()") == "/tmp"
    with pytest.raises(isolet.GuestError, match="exited with status 127"):
        scripted.sh("git status").raise_for_error()
    ran = scripted.sh("echo $x; pwd; cat", program=True, stdin="in", working_directory="/home")
    assert ran.stdout == "\n/home\nin"
    pieces: list[str] = []
    scripted.sh("echo a; echo b", on_stdout=pieces.append)
    assert "".join(pieces) == "a\nb\n"
    assert scripted.sh("while :; do :; done", timeout=0.3).status == "timeout"
    assert scripted.sh("pwd").stdout == "/tmp\n"
