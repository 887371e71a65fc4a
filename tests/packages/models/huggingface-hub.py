"""Lists the files of a model, which the script has put on a server."""
# With: httpcore2

import json
import os
import urllib.request

url = os.environ["SERVER"]
info = {"id": "a/b", "siblings": [{"rfilename": "config.json"}], "sha": "1"}
put = urllib.request.Request(url + "/api/models/a/b", json.dumps(info).encode(), method="PUT")
urllib.request.urlopen(put)

os.environ["HF_ENDPOINT"] = url
from huggingface_hub import HfApi

assert [file.rfilename for file in HfApi().model_info("a/b").siblings] == ["config.json"]
