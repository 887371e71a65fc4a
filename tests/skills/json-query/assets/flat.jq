# Makes nested objects flat: {"a": {"b": 1}} becomes {"a.b": 1}. Lists become text.
def flat:
  . as $whole
  | reduce (paths(type != "object") | select(all(.[]; type == "string"))) as $path
      ({}; . + {($path | join(".")): ($whole | getpath($path)
        | if type == "array" then map(tostring) | join("; ") else . end)});
(if type == "array" then . else [.] end) | map(flat)
