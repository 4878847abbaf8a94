#!/bin/sh
# bench/worker: what a process of its own costs a stage. gpt_tiny, and a stack of layers of 100,000 nodes, go through functionalize,
# autograd, partition-mincut, sgd and stitch with every stage here and with every stage in a worker, in turn; of each stage the
# medians over RUNS (default 15, of the stack a third) pairs, what it takes more, and the median of the pairs' ratios.
#   bench/worker/run.sh [BUILD_DIR] [RUNS]
# A stage is to take less than 5 ms more on gpt_tiny, and no more than 1.3 times as long at 100,000 nodes; what does not is marked.
set -eu
cd "$(dirname "$0")/../.."
build="${1:-build}"; runs="${2:-15}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
${CC:-cc} -std=c11 -O2 bench/scale/generate_stack.c -o "$work/generate_stack"
"$work/generate_stack" 100000 > "$work/stack.ir"

# stages RUN.json: "unit ms" of those that ran in a worker, in order
stages() {
  tr -d ' \n' < "$1" | sed 's/{"unit":/\n&/g' | sed -nE 's/.*"unit":"([^"]*)","name".*"ms":([0-9.e+-]+),.*/\1 \2/p' | grep -vE '^(ir|pt2) '
}
# pairs NAME PROGRAM RUNS BOUND: the rows of its table; BOUND: an awk condition of `more` (ms) and `times`
pairs() {
  : > "$work/rows"
  i=0
  while [ "$i" -lt "$3" ]; do
    for how in none worker; do
      "$build/bin/aothost" opt "$2" --use functionalize --use autograd --use partition-mincut --use sgd --use stitch -o /dev/null \
        --isolate "$how" --json "$work/$how.json"
      stages "$work/$how.json" > "$work/$how"
    done
    paste -d ' ' "$work/none" "$work/worker" | awk '{print NR, $1, $2, $4, $4 - $2, $4 / $2}' >> "$work/rows"
    i=$((i + 1))
  done
  for k in 1 2 3 4 5; do
    unit=$(awk -v k=$k '$1 == k {print $2; exit}' "$work/rows")
    column() { awk -v k=$k -v c="$1" '$1 == k {print $c}' "$work/rows" | sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
    awk -v name="$1" -v unit="$unit" -v here="$(column 3)" -v there="$(column 4)" -v more="$(column 5)" -v times="$(column 6)" \
      "BEGIN {printf \"| %s | %s | %.2f | %.2f | %.2f | %.2f | %s |\\n\", name, unit, here, there, more, times, ($4) ? \"\" : \"over\"}"
  done
}
echo "| program | stage | here, ms | in a worker, ms | more, ms | times | bound |"
echo "|---|---|---|---|---|---|---|"
pairs gpt_tiny tests/fixtures/models/gpt_tiny/train.pt2 "$runs" 'more < 5'
pairs "100,000 nodes" "$work/stack.ir" $(((runs + 2) / 3)) 'times <= 1.3'
