# Reads JSON files, for the scripts of this skill.

fail() {
    echo "error: $1" >&2
    exit "${2:-1}"
}

read_json() { # FILE: its value; the values of JSON Lines as one array
    local file=$1
    [[ -r $file ]] || fail "cannot read $file"
    case $file in
        *.jsonl | *.ndjson) jq -c -s . "$file" || fail "$file is not JSON Lines" ;;
        *) jq -c . "$file" || fail "$file is not JSON" ;;
    esac
}
