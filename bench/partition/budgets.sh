#!/bin/sh
# in:   budgets.sh [--one-graph] AOTHOST [MODEL.pt2 ..]; the fixtures' models when none is named; --one-graph: of training
#       with AdamW as one graph, otherwise of forward and backward
# out:  a row a budget of objective memory: peak by the simulation and by backend-cpu (KiB), share of the all-saved peak, nodes
#       that run again, their cost and the lower bound of it (microseconds of the cost model), the gap between the two
# who:  who changes the search or the simulation
set -eu
step=three-graphs behind=
if [ "$1" = --one-graph ]; then step=one-graph behind="--use adamw --use stitch"; shift; fi
aothost=$1; shift
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || set -- "$root"/tests/fixtures/models/gpt_tiny/train.pt2 "$root"/tests/fixtures/models/bert_tiny/train.pt2 \
  "$root"/tests/fixtures/models/resnet_tiny/train.pt2 "$root"/tests/fixtures/models/vit_tiny/train.pt2 "$root"/examples/gpt_bytes/train.pt2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

number() { tr -d ' \n' < "$work/json" | sed -n "s/.*\"$1\":{\"value\":\([-0-9.e+]*\).*/\1/p"; }
echo "| model | budget | peak | backend | of all saved | again | cost | bound | gap |"
echo "|---|---|---|---|---|---|---|---|---|"
for model in "$@"; do
  name=$(basename "$(dirname "$model")")
  for budget in 1.0 0.9 0.8 0.7 0.6 0.5 0.4 0.3 0.2 0.1; do
    if "$aothost" opt "$model" --use functionalize --use autograd --use partition-mincut --with objective=memory --with budget=$budget \
      --with step=$step $behind --use backend-cpu --json "$work/json" -o "$work/ir" 2> "$work/err"; then
      awk -v n="$name" -v b=$budget -v p="$(number peak-bytes)" -v m="$(number measured-peak-bytes)" -v a="$(number all-saved-peak-bytes)" \
        -v r="$(number recomputed-nodes)" -v c="$(number recompute-cost)" -v l="$(number cost-lower-bound)" -v g="$(number gap)" 'BEGIN {
          printf "| %s | %s | %.1f | %.1f | %.3f | %d | %.2f | %.2f | %.2f |\n", n, b, p / 1024, m / 1024, p / a, r, c * 1e6, l * 1e6, g }'
    else
      grep -q "the least is" "$work/err" || { cat "$work/err"; exit 1; }
      sed -n "s/.*the least is \([0-9]*\) bytes.*a fraction of \([0-9.]*\) .*/| $name | $budget | least: \1 bytes | | \2 | | | | |/p" "$work/err" | head -1
      break
    fi
  done
done
