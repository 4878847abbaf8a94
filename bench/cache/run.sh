#!/bin/sh
# bench/cache: start-up of a model, from an empty cache and from a hit. Median of RUNS (default 11) processes each, whole process
# and, inside it, until the executable is ready.
#   bench/cache/run.sh [BUILD_DIR] [RUNS]
# cold: no cache at all, so import, stages, code generation and the C compiler; warm code: the backend's own code cache is kept, the
# compile cache is not; hit: both.
set -eu
cd "$(dirname "$0")/../.."
build="${1:-build}"; runs="${2:-11}"; root=$PWD
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export AOT_CACHE_DIR="$work/cache"
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
once() { # MODEL: whole process in ms
  begin=$(date +%s%N)
  "$root/$build/bin/aothost" run "$work/once.yaml" --model "$1" --inputs random --json "$work/run.json" > /dev/null
  end=$(date +%s%N)
  echo $(((end - begin) / 1000))
}
inside() { # ms until ready: the cache's own at a hit, the stages' sum otherwise
  awk '/"cache": *{/ {in_cache = 1} in_cache && /"ms"/ {gsub(/[^0-9.e-]/, "", $2); cache = $2} in_cache && /"outcome": "hit"/ {hit = 1}
       !in_cache && /"ms"/ {gsub(/[^0-9.e-]/, "", $2); sum += $2} /^  }/ {in_cache = 0}
       END {printf "%.0f\n", 1000 * (hit ? cache : sum)}' "$work/run.json"
}
cat > "$work/once.yaml" <<'YAML'
aot: 1
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-cpu}]
run: {inputs: random}
YAML
echo "| model | start | whole process, ms | until ready, ms |"
echo "|---|---|---|---|"
for model in gpt_tiny bert_tiny; do
  for kind in cold warm-code hit; do
    rm -rf "$AOT_CACHE_DIR"; [ "$kind" = cold ] || once "tests/fixtures/models/$model/train.pt2" > /dev/null
    i=0; : > "$work/whole"; : > "$work/inside"
    while [ "$i" -lt "$runs" ]; do
      [ "$kind" = cold ] && rm -rf "$AOT_CACHE_DIR"
      [ "$kind" = warm-code ] && rm -rf "$AOT_CACHE_DIR/compiled"
      once "tests/fixtures/models/$model/train.pt2" >> "$work/whole"; inside >> "$work/inside"; i=$((i + 1))
    done
    echo "| $model | $kind | $(median < "$work/whole" | awk '{printf "%.1f", $1 / 1000}') | $(median < "$work/inside" | awk '{printf "%.1f", $1 / 1000}') |"
  done
done
