#!/bin/sh
# Programs that mutate, alias and view, on both backends: with gradients where the recording has some.
. "$(dirname "$0")/lib.sh"
for scenario in "$root"/tests/fixtures/scenarios/*/; do
  expect=$scenario/expected.safetensors
  pipeline=inference
  head -c 4096 "$expect" | grep -qa '"tangent\.' && pipeline=verify-mincut
  for backend in backend-ref backend-cpu; do
    status 0 "$aothost" verify "$root/pipelines/$pipeline.yaml" --model "$scenario/train.pt2" --expect "$expect" --set vars.backend=$backend
  done
done
finish
