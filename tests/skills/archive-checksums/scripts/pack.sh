#!/usr/bin/env bash
# Packs a folder with a list of its files and their checksums.
set -euo pipefail

if (( $# < 2 || $# > 3 )); then
    echo "usage: pack.sh FOLDER OUTDIR [NAME]" >&2
    exit 2
fi
folder=${1%/} out=$2
[[ -d $folder ]] || { echo "error: no such folder: $folder" >&2; exit 1; }
name=${folder##*/}
name=${3:-$name}
[[ $name =~ ^[A-Za-z0-9._-]+$ ]] || { echo "error: not a plain name: $name" >&2; exit 1; }
mkdir -p "$out"
out=$(cd "$out" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/$name"

left_out=0
while IFS= read -r path; do
    path=${path#./}
    case "/$path" in
        */.git/* | */__pycache__/* | */node_modules/* | */.DS_Store | *.tmp)
            left_out=$((left_out + 1))
            continue ;;
        */.env | *.pem | *.key) echo "warning: $path looks like a secret" >&2 ;;
    esac
    mkdir -p "$work/$name/$(dirname "$path")"
    cp -p "$folder/$path" "$work/$name/$path"
done < <(cd "$folder" && find . -type f | LC_ALL=C sort)

cd "$work"
files=$(find "$name" -type f | wc -l)
if (( files == 0 )); then
    echo "error: $folder has no files" >&2
    exit 1
fi
find "$name" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum > "$out/$name.sha256"
find "$name" -type f -printf '%s\t%p\n' | sort -k1,1nr -k2 > "$out/$name.files.tsv"
tar -czf "$out/$name.tar.gz" "$name"

bytes=$(awk '{ sum += $1 } END { print sum + 0 }' "$out/$name.files.tsv")
echo "$name.tar.gz: $((files)) files, $bytes bytes, $left_out left out"
