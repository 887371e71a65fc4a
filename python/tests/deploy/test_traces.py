"""A node sends traces to a collector of OpenTelemetry: sessions, runs and calls of tools."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from node_process import serving
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SECONDS = 60


class Collector(ThreadingHTTPServer):
    """Takes traces, as far as these tests look at them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans: list = []
        self.resources: list = []

    def attributes(self, span: object) -> dict[str, str]:
        return {each.key: each.value.string_value for each in span.attributes}


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.server.resources.append(resource.resource)
            for scope in resource.scope_spans:
                self.server.spans.extend(scope.spans)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        yield server
        server.shutdown()
        thread.join(SECONDS)


def test_a_run_is_a_part_of_what_its_client_does_and_its_calls_are_parts_of_it(collector):
    policy = {"tools": [{"name": "ask"}]}
    with serving("--name", "traced") as address:
        created = requests.post(f"{address}/v1/sessions", json={"policy": policy}, timeout=SECONDS)
        session = created.json()["id"]
        headers = {
            "traceparent": f"00-{TRACE}-{PARENT}-01",
            "accept": "application/x-ndjson",
        }
        runs = f"{address}/v1/sessions/{session}/runs"
        with requests.post(
            runs, json={"code": "ask()"}, headers=headers, stream=True, timeout=SECONDS
        ) as events:
            for line in events.iter_lines():
                event = json.loads(line)
                if event["type"] == "tool_call":
                    answer = f"{address}/v1/sessions/{session}/calls/{event['call_id']}"
                    requests.post(answer, json={"value": 1}, timeout=SECONDS)
        # A run of a client that says nothing of itself.
        requests.post(runs, json={"code": "1 / 0"}, timeout=SECONDS)
    # The node has ended, and has sent what waited.
    spans = {span.name: span for span in collector.spans}
    assert sorted(span.name for span in collector.spans) == ["run", "run", "session", "tool_call"]
    of_client = next(s for s in collector.spans if s.trace_id.hex() == TRACE and s.name == "run")
    assert of_client.parent_span_id.hex() == PARENT
    assert collector.attributes(of_client)["isolet.session"] == session
    assert collector.attributes(of_client)["isolet.outcome"] == "completed"
    call = spans["tool_call"]
    assert (call.trace_id.hex(), call.parent_span_id) == (TRACE, of_client.span_id)
    assert collector.attributes(call)["isolet.tool"] == "ask"
    other = next(s for s in collector.spans if s.name == "run" and s is not of_client)
    assert other.parent_span_id == spans["session"].span_id
    assert collector.attributes(other)["isolet.outcome"] == "raised"
    names = {
        each.key: each.value.string_value
        for resource in collector.resources
        for each in resource.attributes
    }
    assert (names["service.name"], names["service.instance.id"]) == ("isolet", "traced")


def test_a_node_serves_without_its_collector(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    with serving() as address:
        answer = requests.post(f"{address}/v1/run", json={"code": "6 * 7"}, timeout=SECONDS)
        assert answer.json()["value"] == 42
