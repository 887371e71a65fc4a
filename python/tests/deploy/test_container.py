"""The image's recipe has no mistakes that hadolint knows, and names files and options that are."""

from __future__ import annotations

import json
import re

import tomllib
from fleet import DEPLOY
from starting import ROOT, VERSION, known_options, options, script, told

FILE = DEPLOY / "container" / "Containerfile"
TEXT = FILE.read_text().replace("\\\n", " ")


def instruction(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", TEXT, re.MULTILINE)


def test_the_recipe_is_without_the_mistakes_that_hadolint_knows():
    told([script("hadolint"), str(FILE)])


def test_every_asset_is_copied_and_nothing_else():
    lock = tomllib.loads((ROOT / "pyodide-assets" / "lock.toml").read_text())
    names = {file["name"] for file in lock["file"]}
    copied = [words.split() for words in instruction("COPY")]
    (assets,) = (sources for *sources, target in copied if target == "/opt/isolet/assets/")
    assert {one.removeprefix("pyodide-assets/dist/") for one in assets} == names
    assert "ISOLET_ASSETS=/opt/isolet/assets" in instruction("ENV")[0]


def test_the_node_is_not_root_and_its_command_has_options_that_there_are():
    (user,) = instruction("USER")
    assert int(user.split(":")[0]) > 0
    (entrypoint,), (command,) = (instruction(one) for one in ("ENTRYPOINT", "CMD"))
    assert json.loads(entrypoint) == ["isolet", "serve"]
    assert {"--listen", "--config"} == options(json.loads(command)) <= known_options()


def test_the_image_has_the_version_of_the_command():
    readme = FILE.with_name("README.md").read_text()
    assert f"--build-arg VERSION={VERSION} -t isolet:{VERSION} ." in readme
    assert set(re.findall(r"isolet:(\d[\w.-]*)", readme)) == {VERSION}
