"""The unit is one that systemd takes, and its command starts a node that drains in time."""

from __future__ import annotations

import re
import shlex
import shutil

import pytest
import tomllib
from fleet import DEPLOY, Client
from node_process import serving
from starting import known_options, options, told

from isolet._find import find_binary

UNIT = DEPLOY / "systemd" / "isolet@.service"
CONFIGURATION = DEPLOY / "systemd" / "n1.toml"
# How much of the system a service may reach: 0 to 100. Many of Debian's own have 96.
MAX_EXPOSURE = 30


def settings(name: str) -> list[str]:
    """The values of a setting, each in one line."""
    text = UNIT.read_text().replace("\\\n", " ")
    return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)


@pytest.fixture
def unit(tmp_path):
    """The unit of the node n1, which runs the program that is tested."""
    text = UNIT.read_text()
    assert text.count("/usr/local/bin/isolet ") == 1
    file = tmp_path / "isolet@n1.service"
    file.write_text(text.replace("/usr/local/bin/isolet ", f"{find_binary()} "))
    return file


def analyze(*args: str) -> str:
    command = shutil.which("systemd-analyze")
    assert command, "there is no `systemd-analyze`; Debian's package `systemd` has it"
    return told([command, "--no-pager", *args])


def test_systemd_takes_every_line_of_the_unit(unit):
    assert analyze("--man=no", "--recursive-errors=no", "verify", str(unit)) == ""


def test_a_line_that_systemd_does_not_know_is_found(unit):
    unit.write_text(unit.read_text() + "\n[Service]\nKillMode=mixt\n")
    with pytest.raises(AssertionError, match="mixt"):
        analyze("--man=no", "--recursive-errors=no", "verify", str(unit))


def test_the_service_reaches_little_of_the_system(unit):
    said = analyze("security", "--offline=yes", f"--threshold={MAX_EXPOSURE}", str(unit))
    assert "Overall exposure level" in said


def test_a_stop_reaches_the_node_only_and_waits_until_it_has_drained():
    assert settings("KillMode") == ["mixed"]
    drain = tomllib.loads(CONFIGURATION.read_text())["drain"]
    assert int(settings("TimeoutStopSec")[0]) > drain + 10


def test_the_command_of_the_unit_starts_a_node():
    (line,) = settings("ExecStart")
    _, verb, *words = shlex.split(line)
    assert verb == "serve"
    assert options(words) <= known_options()
    listen, config = words.index("--listen"), words.index("--config")
    assert (words[listen + 1], words[config + 1]) == ("${LISTEN}", "/etc/isolet/%i.toml")
    words[config + 1] = str(CONFIGURATION)
    del words[listen : listen + 2]
    started = serving(*(word.replace("%i", "n1") for word in words))
    with started as address, Client(address.removeprefix("http://")) as client:
        assert client.ask("GET", "/readyz").status == 200
        session = client.create()["id"]
        assert session.startswith("n1-")
        assert client.run(session, "print(6 * 7)").json()["stdout"] == "42\n"
