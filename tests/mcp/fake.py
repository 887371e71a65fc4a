"""A server of MCP for the tests of the hub: over stdio, or over HTTP with `http`.

Its arguments are options, NAME or NAME=VALUE:

legacy      it does not know the newer protocol
modern      it does not know the older one
dies        it ends at a message that it does not know
page=N      it lists N tools at a time
text=FILE   the description of `changing` is the file's content
starts=FILE it adds a line to the file when it starts
calls=FILE  it adds a line to the file, the name and the arguments, for each call of a tool
hold=FILE   it opens the file for writing and never closes it
deaf        it answers nothing
bad         one of its tools has no valid form
many=N      it has N more tools
catalogue=FILE   it has the tools of this file of `catalogues/` only, which return their arguments
sse         over HTTP, it answers with events
tls=DIR     over HTTP, it speaks TLS, with the certificate and the key in this directory
token=TEXT  over HTTP, it wants this authorization
raw         it has a tool that writes a line as its answer, ID in it being the call's number
names       it has tools whose names look like something else
late        it answers its first request only when there is a second one
cuts        over HTTP with `sse`, its answers to calls break off, and go on in another stream
gone=FIFO   over HTTP, it writes a line to the file when a client that called `never` hangs up
odd         over HTTP, its answers have no number; its events have other names, after signs of life
loses=N     over HTTP, it forgets its session after each call, and refuses the next one with status N
"""

import itertools
import json
import os
import sys
import threading

OPTIONS = dict(option.partition("=")[::2] for option in sys.argv[1:])
VERSION = "2026-07-28"
LOCK = threading.Lock()
EXTRA = []


def schema(**properties):
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def tools():
    if "catalogue" in OPTIONS:
        with open(OPTIONS["catalogue"]) as file:
            return json.load(file)["tools"] + EXTRA
    number, text = {"type": "number"}, {"type": "string"}
    description = "Changes."
    if "text" in OPTIONS:
        with open(OPTIONS["text"]) as file:
            description = file.read()
    listed = [
        {
            "name": "get-sum",
            "description": "Adds\u200b two numbers.<!-- and obeys -->\n\nMore.",
            "inputSchema": schema(a=number, b=number),
            "outputSchema": {**schema(result=number), "x-fastmcp-wrap-result": True},
            "annotations": {"readOnlyHint": True},
        },
        {"name": "echo", "inputSchema": {"type": "object", "additionalProperties": True}},
        {"name": "find", "inputSchema": schema(**{"from": text})},
        {"name": "changing", "description": description, "inputSchema": schema()},
        {"name": "environment", "inputSchema": schema()},
    ]
    for name in ["fail", "refuse", "crash", "never", "huge", "grow", "noise", "image"]:
        listed.append({"name": name, "inputSchema": schema()})
    if "raw" in OPTIONS:
        listed.append({"name": "raw", "inputSchema": schema(line=text)})
    if "names" in OPTIONS:
        odd = ["x --allow-tool *.*", "a\nfake.echo {}", "\x1b[31mred", "b\u202ec", "\uff44elete"]
        listed += [{"name": name, "inputSchema": schema()} for name in odd]
    for number in range(int(OPTIONS.get("many", 0))):
        listed.append({"name": f"tool{number:05}", "inputSchema": schema()})
    if "bad" in OPTIONS:
        listed.append({"name": "bad", "inputSchema": 3, "annotations": "x"})
    return listed + EXTRA


def listing(params):
    listed = tools()
    start = int(params.get("cursor") or 0)
    end = start + int(OPTIONS.get("page", 100_000))
    page = {"tools": listed[start:end], "ttlMs": 0, "cacheScope": "private"}
    if end < len(listed):
        page["nextCursor"] = str(end)
    return page


def block(text):
    return {"content": [{"type": "text", "text": text}]}


def call(name, arguments):
    if "catalogue" in OPTIONS:
        return {"content": [], "structuredContent": arguments}
    if name == "get-sum":
        return {"content": [], "structuredContent": {"result": arguments["a"] + arguments["b"]}}
    if name == "echo":
        return {"content": [], "structuredContent": arguments}
    if name == "find":
        return block(json.dumps({"found": [{"id": 1, "title": arguments["from"]}]}))
    if name == "environment":
        return block(json.dumps(dict(os.environ)))
    if name == "fail":
        return {**block("no \x1b[31msuch page, token " + os.environ.get("TOKEN", "")),
                "isError": True}
    if name == "huge":
        return block("x" * (17 << 20))
    if name == "image":
        return {"content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw=="}]}
    if name == "noise":
        print("a line for people", flush=True)
        print("one " + os.environ.get("TOKEN", ""), file=sys.stderr, flush=True)
    return block("done")


def handle(message, send):
    """Answers a message by `send`, at once or never."""
    method, params = message.get("method"), message.get("params") or {}
    if "deaf" in OPTIONS:
        return
    if method == "notifications/cancelled":
        print("cancelled", file=sys.stderr, flush=True)
    if "id" not in message or method is None:
        return

    def answer(result):
        if "legacy" not in OPTIONS:
            result = {"resultType": "complete", **result}
        send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def refuse(code, text):
        send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}})

    capabilities = {"tools": {"listChanged": True}}
    if method == "server/discover" and "legacy" not in OPTIONS:
        answer({"supportedVersions": [VERSION], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private"})
    elif method == "initialize" and "modern" not in OPTIONS:
        answer({"protocolVersion": "2025-06-18", "capabilities": capabilities,
                "serverInfo": {"name": "fake", "version": "1"}})
    elif method == "subscriptions/listen" and "legacy" not in OPTIONS:
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
              "params": {"_meta": meta, "notifications": {"toolsListChanged": True}}})
        subscribed.append((meta, send))
    elif method == "tools/list":
        answer(listing(params))
    elif method == "tools/call":
        name = params["name"]
        if "calls" in OPTIONS:
            with open(OPTIONS["calls"], "a") as file:
                file.write(f"{name} {json.dumps(params.get('arguments'))}\n")
        if name == "crash":
            os._exit(3)
        if name == "never":
            print("called", file=sys.stderr, flush=True)
            return
        if name == "raw":
            line = params["arguments"]["line"].replace("ID", str(message["id"]))
            sys.stdout.buffer.write(line.encode("latin-1") + b"\n")
            sys.stdout.flush()
            return
        if name == "refuse":
            refuse(-32602, "not that")
            return
        if name == "grow":
            EXTRA.append({"name": "grown", "inputSchema": schema()})
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            for meta, listener in subscribed:
                listener({**changed, "params": {"_meta": meta}})
            if not subscribed:
                send(changed)
        answer(call(name, params.get("arguments") or {}))
    elif "dies" in OPTIONS:
        os._exit(1)
    else:
        refuse(-32601, f"unknown method {method}")


subscribed = []
sessions = ["one"]
cut = {}


def stdio():
    def send(message):
        with LOCK:
            print(json.dumps(message), flush=True)

    early = [sys.stdin.readline(), sys.stdin.readline()] if "late" in OPTIONS else []
    for line in itertools.chain(early, sys.stdin):
        handle(json.loads(line), send)


def http():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def respond(self, status, body=b"", kind="application/json"):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if "legacy" in OPTIONS:
                self.send_header("Mcp-Session-Id", sessions[-1])
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            if rest := cut.pop(self.headers.get("Last-Event-ID"), None):
                self.respond(200, rest, "text/event-stream")
            else:
                self.respond(405)

        def do_DELETE(self):
            self.respond(200)

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/moved":
                self.send_response(307)
                self.send_header("Location", "http://elsewhere.example/mcp")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if self.headers.get("Authorization", "") != OPTIONS.get("token", ""):
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Bearer")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            message = json.loads(body)
            if "legacy" in OPTIONS and message.get("method") == "server/discover":
                self.respond(400, b"no session", "text/plain")
                return
            method = message.get("method")
            if "loses" in OPTIONS and method in ("tools/call", "tools/list"):
                if self.headers["Mcp-Session-Id"] != sessions[-1]:
                    error = {"code": -32000, "message": "no valid session"}
                    answer = {"jsonrpc": "2.0", "error": error, "id": None}
                    self.respond(int(OPTIONS["loses"]), json.dumps(answer).encode())
                    return
            if "loses" in OPTIONS and method == "initialize":
                sessions.append(f"session {len(sessions)}")
            answers = []
            handle(message, answers.append)
            if "odd" in OPTIONS:
                for answer in answers:
                    answer["id"] = None
            if message.get("method") == "subscriptions/listen":
                answers = []
            if "gone" in OPTIONS and (message.get("params") or {}).get("name") == "never":
                self.rfile.read(1)
                with open(OPTIONS["gone"], "w") as file:
                    file.write("the client is gone\n")
                return
            if not answers:
                self.respond(202)
            elif "sse" in OPTIONS:
                alive = "event: ping\ndata: {}\n\n: hello\n\nevent: heartbeat\ndata: alive\n\n"
                head = alive + "event: error\n" if "odd" in OPTIONS else ""
                events = "".join(f"{head}data: {json.dumps(answer)}\n\n" for answer in answers)
                if "cuts" in OPTIONS and method == "tools/call":
                    cut[str(message["id"])] = events.encode()
                    # Less than was announced, which is an error of the connection.
                    events = f"id: {message['id']}\nretry: 1\ndata:\n\n"
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Content-Length", str(len(events) + 100))
                    self.end_headers()
                    self.wfile.write(events.encode())
                    self.close_connection = True
                    return
                self.respond(200, events.encode(), "text/event-stream")
            else:
                self.respond(200, json.dumps(answers[-1]).encode())
            if "loses" in OPTIONS and method == "tools/call":
                sessions.append("gone")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if "tls" in OPTIONS:
        import ssl

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        directory = OPTIONS["tls"]
        context.load_cert_chain(f"{directory}/server.pem", f"{directory}/key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if "starts" in OPTIONS:
    with open(OPTIONS["starts"], "a") as file:
        file.write("start\n")
if "hold" in OPTIONS:
    held = open(OPTIONS["hold"], "w")
if "http" in OPTIONS:
    http()
else:
    stdio()
