#!/bin/sh
# bench/aot: milliseconds of the middle end on real models: import, functionalize, autograd, partition-mincut. Median of RUNS
# (default 9) runs on one core.
#   bench/aot/run.sh [BUILD_DIR] [RUNS]
set -eu
cd "$(dirname "$0")/../.."
build="${1:-build}"; runs="${2:-9}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
echo "| model | stage | ms | nodes after |"
echo "|---|---|---|---|"
for model in tests/fixtures/models/gpt_tiny tests/fixtures/models/bert_tiny examples/gpt_bytes; do
  i=0
  while [ "$i" -lt "$runs" ]; do
    taskset -c 0 "$build/bin/aothost" opt "$model/train.pt2" --use functionalize --use autograd --use partition-mincut \
      -o /dev/null --json "$work/run.$i.json"
    i=$((i + 1))
  done
  sh bench/scale/table.sh 1 "$work"/run.*.json | awk -F'|' -v m="$(basename "$model")" '{printf "| %s |%s|%s|%s|\n", m, $3, $4, $6}'
done
