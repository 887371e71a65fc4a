#!/usr/bin/env bash
# Checks an archive that pack.sh has made against its checksums.
set -euo pipefail

if (( $# != 1 )) || [[ $1 != *.tar.gz ]]; then
    echo "usage: verify.sh NAME.tar.gz" >&2
    exit 2
fi
archive=$1 sums=${1%.tar.gz}.sha256
for file in "$archive" "$sums"; do
    [[ -r $file ]] || { echo "error: cannot read $file" >&2; exit 1; }
done
archive=$(cd "$(dirname "$archive")" && pwd)/$(basename "$archive")
sums=$(cd "$(dirname "$sums")" && pwd)/$(basename "$sums")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tar -xzf "$archive" || { echo "error: cannot unpack $archive" >&2; exit 1; }

bad=0
sha256sum -c "$sums" 2> /dev/null | grep -v ': OK$' && bad=1
export LC_ALL=C
extra=$(comm -13 <(sed 's/^[0-9a-f]*  //' "$sums" | sort) <(find * -type f | sort))
if [[ -n $extra ]]; then
    echo "$extra" | sed 's/$/: not in the list/'
    bad=1
fi
if (( bad )); then
    exit 1
fi
echo "all $(wc -l < "$sums" | tr -d ' ') files are as they were"
