"""Answers requests of its test client, and refuses what does not fit the type."""
# With: httpx

from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel

app = FastAPI()


class Item(BaseModel):
    n: int


@app.post("/double")
async def double(item: Item):
    return {"result": item.n * 2}


@app.get("/blocking")
def blocking():
    return "yes"


client = TestClient(app)
assert client.post("/double", json={"n": 4}).json() == {"result": 8}
assert client.post("/double", json={"n": "x"}).status_code == 422
assert client.get("/blocking").json() == "yes"
