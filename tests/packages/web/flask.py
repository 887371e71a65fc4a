"""Answers requests of its test client, with a template and JSON."""

from flask import Flask, render_template_string, request

app = Flask("app")


@app.get("/hello/<name>")
def hello(name):
    return render_template_string("Hello {{ name }}", name=name)


@app.post("/double")
def double():
    return {"result": request.json["n"] * 2}


client = app.test_client()
assert client.get("/hello/<b>").text == "Hello &lt;b&gt;"
assert client.post("/double", json={"n": 4}).json == {"result": 8}
