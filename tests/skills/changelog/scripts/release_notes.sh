#!/usr/bin/env bash
# Builds release notes from a list of commits.
set -euo pipefail

if (( $# < 3 || $# > 4 )); then
    echo "usage: release_notes.sh COMMITS VERSION OUTPUT [DATE]" >&2
    exit 2
fi
commits=$1 version=$2 output=$3
[[ -r $commits ]] || { echo "error: cannot read $commits" >&2; exit 1; }

declare -A lines=() counts=()
declare -A titles=(
    [breaking]="Breaking changes"
    [feat]="Added"
    [fix]="Fixed"
    [perf]="Faster"
    [other]="Other changes"
)
pattern='^([a-z]+)(\(([^)]*)\))?(!?): *(.+)$'
number=0 newest=
while IFS=$'\t' read -r hash date author subject || [[ -n $hash ]]; do
    number=$((number + 1))
    [[ -n $hash ]] || continue
    if [[ -z ${subject:-} || ! $date =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]]; then
        echo "error: line $number is not: hash, date, author, subject" >&2
        exit 1
    fi
    [[ $date > $newest ]] && newest=$date
    kind=other scope= text=$subject
    if [[ $subject =~ $pattern ]]; then
        kind=${BASH_REMATCH[1]} scope=${BASH_REMATCH[3]} text=${BASH_REMATCH[5]}
        case $kind in
            feat | fix | perf) ;;
            docs | test | ci | chore | refactor | build | style) kind=silent ;;
            *) kind=other text=$subject scope= ;;
        esac
        [[ ${BASH_REMATCH[4]} == '!' ]] && kind=breaking
    fi
    [[ $subject == *BREAKING* ]] && kind=breaking
    counts[$kind]=$(( ${counts[$kind]:-0} + 1 ))
    [[ $kind == silent ]] && continue
    entry="* ${scope:+**$scope:** }${text^} ($hash, $author)"
    lines[$kind]+=$entry$'\n'
done < "$commits"
day=${4:-$newest}
(( number > 0 )) || { echo "error: $commits is empty" >&2; exit 1; }

kinds=()
for kind in breaking feat fix perf other; do
    [[ -n ${counts[$kind]:-} ]] && kinds+=("$kind")
done
next=$(python3 "$(dirname "$0")/helper.py" "$version" ${kinds[@]+"${kinds[@]}"})
header=$(< "$(dirname "$0")/../assets/header.md")
header=${header//@VERSION@/$next}
header=${header//@DATE@/$day}

{
    echo "$header"
    for kind in ${kinds[@]+"${kinds[@]}"}; do
        printf '\n### %s\n\n%s' "${titles[$kind]}" "${lines[$kind]}"
    done
    echo
    echo "Thanks to $(cut -f 3 "$commits" | grep . | sort -u | paste -s -d, - | sed 's/,/, /g')."
} > "$output"

echo "next version: $next"
for kind in ${kinds[@]+"${kinds[@]}"}; do
    echo "${titles[$kind]}: ${counts[$kind]}"
done
echo "left out: ${counts[silent]:-0}"
