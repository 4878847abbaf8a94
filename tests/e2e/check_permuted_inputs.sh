#!/bin/sh
# Normalizations and pads over permuted inputs, which a backend has decomposed: what the forward saves of them has the strides that
# the backward was given (tests/fixtures/found2/permuted_inputs).
. "$(dirname "$0")/lib.sh"
for expect in "$root"/tests/fixtures/found2/permuted_inputs/*/expected.safetensors; do
  for partition in default mincut; do
    status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$(dirname "$expect")/train.pt2" --expect "$expect" \
      --set vars.backend=backend-cpu --set vars.partition=partition-$partition
  done
done
finish
