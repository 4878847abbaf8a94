#!/bin/sh
# in:   memory.sh BUILD ARCHIVE.pt2 [SETTING ..]; archives of models.py (tools/export_model.py), settings of train.yaml (objective=memory)
# out:  a row: what training with AdamW in bfloat16 takes of an H100 by backend-cuda's plan, in GiB: parameters and states, the
#       arena, both, and the most that is alive in it; what runs again, ms of the cost model, and its part of forward and backward;
#       loops that are called, GB that they move, steps
# who:  who has no GPU at hand: the driver's double compiles, and nothing runs
set -eu
build=$1 archive=$2; shift 2
here=$(cd "$(dirname "$0")" && pwd)
double=$build/tests/cuda-double
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
settings=
for setting in "$@"; do settings="$settings --set vars.$setting"; done
"$build/bin/aothost" inspect "$archive" --json - > "$work/model"
# shellcheck disable=SC2086
AOT_CUDA_DOUBLE=multiprocessors=132 LD_LIBRARY_PATH=$double AOT_NVRTC=$double "$build/bin/aothost" inspect "$here/train.yaml" --model "$archive" --memory --time \
  --json "$work/json" --set vars.backend=backend-cuda --set stages.backend-cuda.algorithms=first --set run.device=cuda \
  --set run.train.precision=bf16 $settings > "$work/out" 2>&1 ||
  { tail -20 "$work/out"; exit 1; }
told() { sed -n "s/^ *$1: \([0-9.e+-]*\).*/\1/p" "$work/out" | tail -1; }
planned() { sed -n "s/^ *\"$1\": \([0-9]*\).*/\1/p" "$work/json" | head -1; }
parameters=$(sed -n 's/^.*"parameter_bytes": \([0-9]*\).*/\1/p' "$work/model" | head -1)
awk -v name="$(basename "$(dirname "$archive")")" -v how="$*" -v p="$parameters" -v a="$(planned arena_bytes)" -v l="$(planned alive_bytes)" \
  -v again="$(told recompute-cost)" -v step="$(told step-cost)" -v calls="$(told generated-calls)" -v moved="$(told loop-bytes)" -v n="$(told kernels)" 'BEGIN {
    g = 2 ^ 30
    printf "| %s | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f %% | %d | %.1f | %d |\n", name, how, 3 * p / g, a / g, (3 * p + a) / g, l / g, again * 1e3,
      (step > 0 ? 100 * again / step : 0), calls, moved / 1e9, n }'
