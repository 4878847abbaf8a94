#!/bin/sh
# A causal language model of symbolic batch and length with a mask `a & b` a layer, at four sizes, with everything saved and within
# budgets of memory. The mask's strides are length ** 2 as PyTorch records them and length * length as operators give them.
. "$(dirname "$0")/lib.sh"
model=$root/tests/models/masked_lengths
for budget in 1.0 0.7 0.5; do
  sed "s/- use: \${partition}/- {use: partition-mincut, with: {objective: memory, budget: $budget}}/" "$root/pipelines/verify.yaml" > verify.yaml
  for backend in backend-ref backend-cpu; do
    for expected in $(expectations "$model"); do
      status 0 "$aothost" verify verify.yaml --model "$model/train.pt2" --expect "$expected" --set vars.backend=$backend
    done
  done
done
finish
