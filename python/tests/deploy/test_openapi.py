"""What schemathesis makes up by the node's own description of its routes does not break it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from node_process import serving

EXAMPLES = int(os.environ.get("ISOLET_TEST_EXAMPLES", "20"))
"""How many requests are made up for each route in the fuzzing phase. The others have a number of
their own."""

SECONDS = 170

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "use_after_free",
]


def test_no_request_that_is_made_up_breaks_the_node_or_its_description(tmp_path):
    config = tmp_path / "node.toml"
    # Sessions that were made up make room, and their code ends.
    config.write_text(
        "max_sessions = 2000\nttl = 2\nqueue_time = 60\n[ceiling]\nlimits = { run_time = 0.2 }\n"
    )
    with serving("--config", str(config)) as address:
        schemathesis = pathlib.Path(sys.executable).with_name("schemathesis")
        ran = subprocess.run(
            [
                schemathesis,
                "run",
                f"{address}/openapi.json",
                "--exclude-path",
                "/v1/batch",  # whose lines schemathesis cannot make
                "--checks",
                ",".join(CHECKS),
                "--max-examples",
                str(EXAMPLES),
                "--seed",
                "1",
                "--no-color",
                "--warnings",
                "off",
            ],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=tmp_path,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
