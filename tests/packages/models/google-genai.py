"""Asks a model, whose answer the script has put on a server, and reads it as a class."""
# With: google-genai<1.69, google-auth<2.48

import json
import os
import urllib.request

from google import genai

url = os.environ["SERVER"] + "/google"
answer = {"candidates": [{"content": {"role": "model", "parts": [{"text": "4"}]}}]}
place = url + "/v1/models/m:generateContent"
urllib.request.urlopen(urllib.request.Request(place, json.dumps(answer).encode(), method="PUT"))

client = genai.Client(api_key="x", http_options={"base_url": url, "api_version": "v1"})
assert client.models.generate_content(model="m", contents="2 + 2").text == "4"
