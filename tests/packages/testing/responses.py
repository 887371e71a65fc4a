"""Answers requests without a server."""
# With: requests

import requests
import responses

with responses.RequestsMock() as mock:
    mock.get("https://example.com/x", json={"a": 1})
    assert requests.get("https://example.com/x").json() == {"a": 1}
