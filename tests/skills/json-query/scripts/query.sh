#!/usr/bin/env bash
# Runs a filter of jq on a JSON file, and writes JSON, CSV or TSV.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib.sh"

usage() {
    echo "usage: query.sh FILE json|csv|tsv FILTER|@NAME [OUTPUT] [--arg NAME VALUE]..." >&2
    exit 2
}

(( $# >= 3 )) || usage
file=$1 format=$2 filter=$3
shift 3
output=-
if [[ $# -gt 0 && $1 != --* ]]; then
    output=$1
    shift
fi
arguments=()
while (( $# )); do
    [[ $1 == --arg && $# -ge 3 ]] || usage
    arguments+=(--arg "$2" "$3")
    shift 3
done

if [[ $filter == @* ]]; then
    saved=$here/../assets/${filter#@}.jq
    [[ -f $saved ]] || fail "no saved filter ${filter#@}; there are: $(
        cd "$here/../assets" && for each in *.jq; do printf '%s ' "${each%.jq}"; done)"
    filter=$(cat "$saved")
fi

rows='
  [if type == "array" then .[] else . end | objects]
  | (reduce (.[] | keys_unsorted[]) as $key ([]; if index([$key]) then . else . + [$key] end))
      as $columns
  | $columns, (.[] | . as $row | [$columns[] | $row[.] | if type == "object" or type == "array"
                                                         then tojson else . end])'

data=$(read_json "$file")

run() {
    case $format in
        json) jq ${arguments[@]+"${arguments[@]}"} "$filter" <<< "$data" ;;
        csv | tsv)
            jq -c ${arguments[@]+"${arguments[@]}"} "$filter" <<< "$data" |
                jq -c -s 'if length == 1 then .[0] else . end' |
                jq -r "$rows | @$format" ;;
        *) usage ;;
    esac
}

if [[ $output == - ]]; then
    run
else
    run > "$output"
    echo "$output: $(wc -l < "$output" | tr -d ' ') lines of $format"
fi
