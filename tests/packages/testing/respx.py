"""Answers requests of httpx without a server."""
# With: httpx

import httpx
import respx

with respx.mock:
    route = respx.get("https://example.com/x").respond(json={"a": 1})
    assert httpx.get("https://example.com/x").json() == {"a": 1} and route.called
