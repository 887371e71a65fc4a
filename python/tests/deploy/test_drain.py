"""A node that is told to end, while very many sessions run code."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from fleet import Client, nodes, until
from node_process import SECONDS

SESSIONS = 200
AT_ONCE = 150


def test_sigterm_loses_no_run_and_lets_no_session_in(tmp_path):
    config = tmp_path / "node.toml"
    config.write_text(f"max_runs = {AT_ONCE}\ndrain = 120\nqueue_time = 120\n")
    with (
        nodes("n1", options=("--config", str(config))) as fleet,
        ThreadPoolExecutor(SESSIONS) as pool,
    ):
        node = fleet["n1"]
        client = Client(node.address, connections=SESSIONS)
        sessions = list(pool.map(lambda _: client.create()["id"], range(SESSIONS)))

        def run(session: str) -> str:
            code = "import time\nfor step in range(30): time.sleep(0.1)\nprint(step)"
            answer = client.run(session, code)
            return answer.json()["stdout"] if answer.status == 200 else answer.code

        runs = [pool.submit(run, session) for session in sessions]
        asking = Client(node.address)

        def load() -> tuple[int, int]:
            now = asking.ask("GET", "/v1/node").json()
            return now["running"], now["waiting"]

        until(lambda: load() == (AT_ONCE, SESSIONS - AT_ONCE))
        node.terminate()
        until(lambda: asking.ask("GET", "/readyz").status == 503)
        for path, body in (("/v1/sessions", {}), ("/v1/run", {"code": "1"})):
            refused = asking.ask("POST", path, body)
            assert (refused.status, refused.code) == (503, "draining")
        assert not any(run.done() for run in runs)
        assert Counter(run.result() for run in runs) == {"29\n": SESSIONS}
        assert node.process.wait(SECONDS) == 0


def test_a_run_that_takes_longer_does_not_keep_the_node(tmp_path):
    config = tmp_path / "node.toml"
    config.write_text("drain = 0.5\n")
    with nodes("n1", options=("--config", str(config))) as fleet:
        node = fleet["n1"]
        client = Client(node.address)
        session = client.create()["id"]
        _, events = client.events(session, "print('begun', flush=True)\nwhile True: pass")
        assert next(events)["type"] == "stdout"
        node.terminate()
        assert node.process.wait(SECONDS) == 0
