#!/bin/sh
# bench/scale: how the middle end grows with the graph. A generated stack of transformer layers of 10^4, 10^5 and 10^6 nodes
# goes through import-as-text, functionalize, autograd, partition-mincut, sgd and stitch on one core; milliseconds, nodes per second
# and peak memory a stage. Median of RUNS (default 3) runs.
#   bench/scale/run.sh [BUILD_DIR] [RUNS]
set -eu
cd "$(dirname "$0")/../.."
build="${1:-build}"; runs="${2:-3}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
${CC:-cc} -std=c11 -O2 bench/scale/generate_stack.c -o "$work/generate_stack"
echo "| nodes | stage | ms | nodes/s | nodes after | peak MiB |"
echo "|---|---|---|---|---|---|"
for n in 10000 100000 1000000; do
  "$work/generate_stack" "$n" > "$work/stack.ir"
  i=0
  while [ "$i" -lt "$runs" ]; do
    taskset -c 0 "$build/bin/aothost" opt "$work/stack.ir" --use functionalize --use autograd --use partition-mincut \
      --use sgd --use stitch -o /dev/null --json "$work/run.$i.json"
    i=$((i + 1))
  done
  sh bench/scale/table.sh "$n" "$work"/run.*.json
done
