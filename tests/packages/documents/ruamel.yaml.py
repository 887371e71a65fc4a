"""Changes YAML and keeps its comments."""

import io

from ruamel.yaml import YAML

yaml = YAML()
data = yaml.load("a: 1  # one\nb: [x, y]\n")
data["a"] = 2
file = io.StringIO()
yaml.dump(data, file)
assert file.getvalue() == "a: 2  # one\nb: [x, y]\n"
