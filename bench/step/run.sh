#!/bin/sh
# A training step as one graph and as three: bytes at the boundary and in the arena, bytes copied, peak of the process, time.
#   bench/step/run.sh [BUILD [RUNS]]      a table for docs/BENCH.md; times are medians of RUNS runs of each, in turn
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}; runs=${2:-5}
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
number() { sed -n "s/.*\"$1\": \([0-9.e+-]*\),*/\1/p" "$dir/$2.json" | head -1; }
echo "| model | step | boundary and arena, KiB | parameters and state, KiB | copied a step, KiB | process peak, MiB | ms a step, median |"
echo "|---|---|---|---|---|---|---|"
for model in "$root"/examples/gpt_bytes "$root"/tests/fixtures/models/gpt_tiny "$root"/tests/fixtures/models/bert_tiny \
             "$root"/tests/fixtures/models/resnet_tiny "$root"/tests/fixtures/models/vit_tiny; do
  cat > "$dir/p.yaml" <<EOF
aot: 1
model: {path: $model/train.pt2}
stages: [{use: functionalize}, {use: rng}, {use: autograd}, {use: partition-mincut}, {use: backend-cpu, with: {threads: 1}}]
run: {train: {steps: 20, lr: 0.001, data: random, log-every: 0}}
EOF
  for step in one-graph three-graphs; do : > "$dir/$step.ms"; done
  for _ in $(seq "$runs"); do
    for step in one-graph three-graphs; do
      "$build/bin/aothost" run "$dir/p.yaml" -q --set run.train.step=$step --json "$dir/$step.json"
      number seconds $step | awk '{ print $1 * 1000 / 20 }' >> "$dir/$step.ms"
    done
  done
  for step in one-graph three-graphs; do
    ms=$(sort -g "$dir/$step.ms" | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }')
    awk -v m="$(basename "$model")" -v s=$step -v b="$(number boundary_bytes $step)" -v a="$(number arena_bytes $step)" -v l="$(number leaf_bytes $step)" \
        -v c="$(number copied_bytes $step)" -v p="$(number peak_rss_bytes $step)" -v ms="$ms" \
        'BEGIN { printf "| %s | %s | %.1f | %.1f | %.1f | %.1f | %.2f |\n", m, s, (a + b) / 1024, l / 1024, c / 1024, p / 1048576, ms }'
  done
done
