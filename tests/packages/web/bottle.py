"""Answers a request with a template."""

import io

import bottle

app = bottle.Bottle()
app.route("/hi/<name>", callback=lambda name: bottle.template("Hi {{name}}", name=name))
request = {"REQUEST_METHOD": "GET", "PATH_INFO": "/hi/<b>", "wsgi.input": io.BytesIO()}
request["wsgi.errors"] = io.StringIO()
assert b"".join(app(request, lambda *answer: None)) == b"Hi &lt;b&gt;"
