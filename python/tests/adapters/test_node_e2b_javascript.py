"""`isolet serve --listen` speaks E2B's protocol with its own client for JavaScript."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from node_process import serving

PACKAGE, VERSION = "@e2b/code-interpreter", "2.8.0"
ROOT = Path(__file__).parents[3]
SECONDS = 150


@pytest.fixture(scope="module")
def packages() -> Path:
    """A directory with the client, which npm installs there once."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    directory = target / "client" / "javascript"
    about = directory / "node_modules" / PACKAGE / "package.json"
    if not about.exists() or json.loads(about.read_text())["version"] != VERSION:
        directory.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        arguments = ["--prefix", str(directory), f"{PACKAGE}@{VERSION}"]
        subprocess.run([*npm, *arguments], check=True, timeout=SECONDS)
    return directory


@pytest.mark.skipif(
    not shutil.which("node") or not shutil.which("npm"), reason="there is no node or no npm"
)
def test_the_client_for_javascript_works_unmodified(packages, tmp_path):
    config = tmp_path / "node.toml"
    config.write_text(f'[store]\ndirectory = "{tmp_path}/store"\n')
    # Where node finds the client.
    script = packages / "client.mjs"
    script.write_bytes((Path(__file__).parent / "e2b_client.mjs").read_bytes())
    with serving("--config", str(config)) as address:
        own = {"E2B_API_URL": address, "E2B_SANDBOX_URL": address, "E2B_API_KEY": "any"}
        ran = subprocess.run(
            ["node", str(script)],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "all is as it should be\n"
