"""A stand-in for a public MCP server on stdio: upstream.py CATALOGUE.json LATENCY_MS.

It lists the recorded tools, and answers the calls that `data.py` knows, each after the latency.
Calls that come together wait together, as a server's requests to its service do.
"""

import json
import sys
import threading
import time
from pathlib import Path

import data

CATALOGUE = Path(sys.argv[1])
LATENCY = float(sys.argv[2]) / 1000
TOOLS = json.loads(CATALOGUE.read_text())["tools"]
LOCK = threading.Lock()


def send(message):
    line = json.dumps({"jsonrpc": "2.0", **message})
    with LOCK:
        print(line, flush=True)


def respond(number, answer):
    """Answers a call of a tool."""
    if LATENCY:
        time.sleep(LATENCY)
    send({"id": number, "result": answer()})


def handle(message):
    number, method = message.get("id"), message.get("method")
    if number is None or method is None:
        return
    if method == "initialize":
        capabilities, about = {"tools": {}}, {"name": CATALOGUE.stem, "version": "1"}
        send({"id": number, "result": {
            "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": about}})
    elif method == "tools/list":
        send({"id": number, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        params = message["params"]
        answer = data.answer(CATALOGUE.stem, params["name"], params.get("arguments") or {})
        if LATENCY:
            threading.Thread(target=respond, args=(number, answer), daemon=True).start()
        else:
            respond(number, answer)
    else:
        send({"id": number, "error": {"code": -32601, "message": f"unknown method {method}"}})


for line in sys.stdin:
    handle(json.loads(line))
