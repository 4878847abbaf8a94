#!/bin/sh
# bench/regions: what it saves to keep a repeated region whole. A stack of 48 equal transformer layers, each a call of one region,
# is made functional with regions inline and kept, differentiated and divided by partition-mincut, on one core; nodes after the
# last stage (regions counted once) and milliseconds of autograd and of the partition. Fastest of RUNS (default 5) runs.
#   bench/regions/run.sh [BUILD_DIR] [RUNS] [LAYERS]
set -eu
cd "$(dirname "$0")/../.."
build="${1:-build}"; runs="${2:-5}"; layers="${3:-48}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
${CC:-cc} -std=c11 -O2 bench/scale/generate_stack.c -o "$work/generate_stack"
"$work/generate_stack" $((layers * 20)) regions > "$work/stack.ir"

# fastest STAGE FILE...: the least milliseconds of the stage
fastest() {
  stage=$1; shift
  sed -n "/\"name\": \"$stage\"/,/\"ms\"/s/.*\"ms\": \([0-9.]*\).*/\1/p" "$@" | sort -g | head -1
}
echo "| regions | nodes | autograd ms | partition-mincut-regions ms | partition-mincut ms | all three |"
echo "|---|---|---|---|---|---|"
for regions in inline keep; do
  i=0
  while [ "$i" -lt "$runs" ]; do
    taskset -c 0 "$build/bin/aothost" opt "$work/stack.ir" --use functionalize --with regions=$regions --use autograd \
      --use partition-mincut-regions --use partition-mincut -o "$work/out.ir" --json "$work/$regions.$i.json"
    i=$((i + 1))
  done
  a=$(fastest autograd "$work/$regions".*.json); r=$(fastest partition-mincut-regions "$work/$regions".*.json)
  p=$(fastest partition-mincut "$work/$regions".*.json)
  nodes=$(grep -c '^  %.* = ' "$work/out.ir")
  echo "$regions $nodes $a $r $p" | awk '{printf "| %s | %d | %.2f | %.2f | %.2f | %.2f |\n", $1, $2, $3, $4, $5, $3 + $4 + $5}'
done
