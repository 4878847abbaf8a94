#!/bin/sh
# two_ranks.sh AOTHOST PLUGIN: two processes tell the losses of one that takes the batches of both; one that is left alone says so.
set -u
here=$(dirname "$0"); tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
export AOT_CACHE=off
run() { timeout 120 "$aothost" run "$here/train.yaml" --plugin-dir "$plugin" --set vars.file="$tmp/meeting" "$@"; }
aothost=$1; plugin=$2
losses() { grep -o '^step [0-9/]*  loss [0-9.]*' "$1"; }

run --set vars.n=1 --set run.train.accumulate=2 > "$tmp/one" 2>&1 || { cat "$tmp/one"; exit 1; }
run --set vars.rank=1 > "$tmp/rank1" 2>&1 & # prints nothing: rank 0 speaks for all
other=$!
run > "$tmp/rank0" 2>&1 || { cat "$tmp/rank0"; exit 1; }
wait "$other" || { cat "$tmp/rank1"; exit 1; }
losses "$tmp/one" > "$tmp/a"; losses "$tmp/rank0" > "$tmp/b"
[ "$(wc -l < "$tmp/a")" = 4 ] && cmp "$tmp/a" "$tmp/b" || { cat "$tmp/a" "$tmp/b"; exit 1; }
run --set run.ranks-with.patience=1 > "$tmp/alone" 2>&1 && { echo "one of two ranks has trained alone"; exit 1; }
grep -q 'the others have not come to' "$tmp/alone" || { cat "$tmp/alone"; exit 1; }
echo "two ranks train as one"
