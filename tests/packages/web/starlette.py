"""Answers a request of its test client."""
# With: httpx

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient


async def hello(request):
    return JSONResponse({"hello": request.path_params["name"]})


client = TestClient(Starlette(routes=[Route("/{name}", hello)]))
assert client.get("/you").json() == {"hello": "you"}
