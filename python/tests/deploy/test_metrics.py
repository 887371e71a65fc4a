"""The dashboard and the alerts ask for metrics and labels that nodes have, and work."""

from __future__ import annotations

import itertools
import json
import re
import shutil

import metrics
import pytest
import requests
import yaml
from fleet import DEPLOY
from node_process import serving
from starting import told

ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD = json.loads((DEPLOY / "grafana" / "isolet.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = {
    **{
        f"{panel['title']}: {one['refId']}": one["expr"]
        for panel in PANELS
        for one in panel["targets"]
    },
    **{
        rule["alert"]: rule["expr"]
        for group in yaml.safe_load(ALERTS.read_text())["groups"]
        for rule in group["rules"]
    },
}
# Those that Prometheus gives every series, and the one that it makes.
LABELS, UP = {"job", "instance"}, {"up": set()}


def promtool(*args: str) -> str:
    command = shutil.which("promtool")
    assert command, "there is no `promtool`; Debian's package `prometheus` has it"
    return told([command, *args])


def test_a_node_has_these_metrics_and_no_others():
    with serving() as address:
        text = requests.get(f"{address}/metrics", timeout=60).text
    # A counter's series has `_total`, and an info's `_info`.
    kinds = {"counter": "_total", "info": "_info"}
    names = {
        name + kinds.get(kind, "") for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M)
    }
    expected = {name for name in metrics.SERIES if not re.search(r"_(bucket|sum|count)$", name)}
    assert names == expected | metrics.HISTOGRAMS.keys()


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_is_about_series_and_labels_that_there_are(name):
    series = {**metrics.SERIES, **UP}
    text = re.sub(r'"[^"]*"', '""', QUERIES[name])
    named = set(re.findall(r"\b(?:isolet_|process_|up\b)\w*", text))
    assert named
    assert named <= series.keys()
    labels = {label for one in named for label in series[one]} | LABELS
    groups = re.findall(r"\bby \(([^)]*)\)", text)
    matchers = re.findall(r"(\w+) ?(?:=~|!~|!=|=)\"\"", text)
    used = {label.strip() for group in groups for label in group.split(",")} | set(matchers)
    assert used <= labels


def test_each_query_is_one_that_prometheus_takes(tmp_path):
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "1m")}
        for number, query in enumerate(QUERIES.values())
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))


def test_prometheus_takes_the_configuration_and_its_job_is_that_of_the_alerts(tmp_path):
    configuration = yaml.safe_load(ALERTS.with_name("kubernetes.yaml").read_text())
    (job,) = configuration["scrape_configs"]
    assert f'up{{job="{job["job_name"]}"}}' in QUERIES["IsoletNodeDown"]
    # Debian's promtool cannot ask Kubernetes for pods.
    (found,) = job.pop("kubernetes_sd_configs")
    assert found == {"role": "pod", "namespaces": {"names": ["isolet"]}}
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration))
    shutil.copy(ALERTS, tmp_path)
    promtool("check", "config", str(file))


def test_the_alerts_fire_when_they_should_and_no_earlier():
    promtool("check", "rules", str(ALERTS))
    promtool("test", "rules", str(ALERTS.with_name("alerts_test.yaml")))


def test_every_metric_is_on_the_dashboard():
    shown = " ".join(QUERIES.values())
    missing = {name for name in metrics.SERIES if name not in shown}
    assert missing == {f"{name}_sum" for name in metrics.HISTOGRAMS} | {
        # `isolet_runs_*` and requests have their own counts.
        "isolet_session_start_seconds_count",
        "isolet_run_queue_seconds_count",
    }


def test_panels_have_a_number_and_a_place_of_their_own():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    for place in places:
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
    for one, other in itertools.combinations(places, 2):
        apart = any(
            first[at] + first[size] <= second[at]
            for at, size in (("x", "w"), ("y", "h"))
            for first, second in ((one, other), (other, one))
        )
        assert apart, (one, other)
