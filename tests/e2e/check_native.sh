#!/bin/sh
# backend-cpu runs none of these operators in a reference kernel; and what it computes is what PyTorch did.
. "$(dirname "$0")/lib.sh"
for program in "$root"/tests/e2e/native/*.ir; do
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model "$program" --json r.json
  slow=$(grep -A1 '"fallback-nodes"' r.json | sed -n 's/.*"value": \([0-9.]*\).*/\1/p')
  [ "$slow" = 0.0 ] || complain "$(basename "$program"): ${slow:-?} nodes in reference kernels"
done
for names in 'aten._scaled_dot*' 'aten.scatter*' 'aten.index_*' 'aten.sort.*' aten.topk.default; do
  status 0 "$aothost" ops "$names" --cases "$root/tests/fixtures/ops/cases.json" --backend backend-cpu
done
finish
