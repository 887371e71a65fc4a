"""Changes TOML and keeps its comments."""

import tomlkit

document = tomlkit.parse("[a] # first\nb = 1\n")
document["a"]["b"] = 2
assert tomlkit.dumps(document) == "[a] # first\nb = 2\n"
