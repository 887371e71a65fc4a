"""The image's recipe has no mistakes that hadolint knows, and names files and options that are."""

from __future__ import annotations

import json
import re

from fleet import DEPLOY
from starting import VERSION, known_options, options, script, told

FILE = DEPLOY / "container" / "Containerfile"
TEXT = FILE.read_text().replace("\\\n", " ")


def instruction(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", TEXT, re.MULTILINE)


def test_the_recipe_is_without_the_mistakes_that_hadolint_knows():
    told([script("hadolint"), str(FILE)])


def test_the_command_finds_pyodide_beside_its_directory():
    copied = dict(words.split() for words in instruction("COPY"))
    assert copied == {"bin": "/usr/local/bin/", "share/isolet": "/usr/local/share/isolet/"}
    assert not any("ISOLET_ASSETS" in words for words in instruction("ENV"))


def test_the_node_is_not_root_and_its_command_has_options_that_there_are():
    (user,) = instruction("USER")
    assert int(user.split(":")[0]) > 0
    (entrypoint,), (command,) = (instruction(one) for one in ("ENTRYPOINT", "CMD"))
    assert json.loads(entrypoint) == ["isolet", "serve"]
    assert {"--listen", "--config"} == options(json.loads(command)) <= known_options()


def test_the_image_has_the_version_of_the_command():
    readme = FILE.with_name("README.md").read_text()
    assert f"-t isolet:{VERSION} \\\n    target/dist/isolet-{VERSION}-x86_64" in readme
    assert set(re.findall(r"isolet:(\d[\w.-]*)", readme)) == {VERSION}
