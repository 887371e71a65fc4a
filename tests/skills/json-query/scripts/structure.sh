#!/usr/bin/env bash
# Prints the paths of a JSON file with their types, and how often each comes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ $# -ne 1 ]]; then
    echo "usage: structure.sh FILE" >&2
    exit 2
fi
read_json "$1" | jq -r '
    def name:
      reduce .[] as $key (""; . + (if $key | type == "number" then "[]" else ".\($key)" end));
    . as $whole
    | paths
    | . as $path
    | "\($path | name)\t\($whole | getpath($path) | type)"' |
    sort | uniq -c | awk '{ count = $1; sub(/^ *[0-9]+ /, ""); print $0 "\t" count }'
