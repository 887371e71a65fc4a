#!/usr/bin/env bash
# Summarises an access log in the combined format.
set -euo pipefail
export LC_ALL=C

fail() {
    echo "error: $1" >&2
    exit "${2:-1}"
}

if (( $# < 2 || $# > 3 )); then
    echo "usage: report.sh LOGFILE OUTDIR [TOP]" >&2
    exit 2
fi
log=$1 out=$2 top=${3:-10}
[[ $top =~ ^[1-9][0-9]*$ ]] || fail "not a number: $top" 2
[[ -r $log ]] || fail "cannot read $log"
mkdir -p "$out"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

read_log() {
    case $log in
        *.gz) zcat "$log" ;;
        *) cat "$log" ;;
    esac
}

combined='^[^ ]+ [^ ]+ [^ ]+ \[[^]]+\] "[^"]*" [0-9]{3} ([0-9]+|-)( |$)'
read_log | grep -E "$combined" > "$work/lines" || fail "no line of $log is in the combined format"
read_log | grep -Ev "$combined" > "$out/unparsed.log" || true

# address, hour, method, path without its query, status, bytes
awk -F'"' '{
    split($1, left, " ")
    time = substr(left[4], 2)
    split($2, request, " ")
    path = request[2]
    sub(/\?.*/, "", path)
    split($3, right, " ")
    bytes = right[2] == "-" ? 0 : right[2]
    hour = substr(time, 1, 14)
    printf "%s\t%s\t%s\t%s\t%s\t%s\n", left[1], hour, request[1], path, right[1], bytes
}' "$work/lines" > "$work/fields"

count() { # COLUMN: how often each value comes, most first
    cut -f "$1" "$work/fields" | sort | uniq -c | sort -k1,1nr -k2 | sed -E 's/^ *([0-9]+) /\1\t/'
}

table() { # NAME
    printf '\n## %s\n\n| requests | %s |\n|-|-|\n' "$1" "${1,,}"
    head -n "$top" | while IFS=$'\t' read -r number value; do
        echo "| $number | ${value//|/\\|} |"
    done
}

{ printf 'status\trequests\n'; count 5 | awk -F'\t' '{ print $2 "\t" $1 }' | sort; } \
    > "$out/statuses.tsv"
{ printf 'hour\trequests\terrors\n'
  awk -F'\t' '{ all[$2]++; if ($5 >= 500) bad[$2]++ }
      END { for (hour in all) printf "%s\t%d\t%d\n", hour, all[hour], bad[hour] }' "$work/fields" |
      sort; } > "$out/hours.tsv"

probes='\.\./|/\.(env|git)|/wp-login|/phpmyadmin|union.{1,3}select|<script|%3cscript|/etc/passwd'
grep -iE "$probes" "$work/lines" > "$out/suspicious.log" || true

total=$(wc -l < "$work/fields")
addresses=$(cut -f 1 "$work/fields" | sort -u | wc -l)
errors=$(awk -F'\t' '$5 >= 500' "$work/fields" | wc -l)
bytes=$(awk -F'\t' '{ sum += $6 } END { printf "%.1f", sum / 1048576 }' "$work/fields")
share=$(awk -v e="$errors" -v t="$total" 'BEGIN { printf "%.1f", 100 * e / t }')
suspicious=$(wc -l < "$out/suspicious.log")
unparsed=$(wc -l < "$out/unparsed.log")

{
    echo "# Report of $(basename "$log")"
    echo
    echo "* $((total)) requests of $((addresses)) addresses, $bytes MiB"
    echo "* $((errors)) server errors ($share %)"
    echo "* $((suspicious)) suspicious requests, $((unparsed)) lines not understood"
    count 5 | table Status
    count 2 | table Hour
    count 1 | table Address
    count 4 | table Path
    awk -F'\t' '$5 >= 400 { print $5 " " $4 }' "$work/fields" | sort | uniq -c |
        sort -k1,1nr -k2 | sed -E 's/^ *([0-9]+) /\1\t/' | table Failing
} > "$out/report.md"

echo "requests: $((total))"
echo "server errors: $((errors)) ($share %)"
echo "suspicious: $((suspicious))"
echo "report: $out/report.md"
