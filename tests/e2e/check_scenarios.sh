#!/bin/sh
# Programs that mutate, alias and view, under both partitioners (where the recording has gradients) and both backends: values by
# `aothost verify`; strides, offsets and who shares whose storage, as eager PyTorch left them (where info.json has them), by step_layout.
. "$(dirname "$0")/lib.sh"
layout=$(dirname "$2")/step_layout
for scenario in "$root"/tests/fixtures/scenarios/*/; do
  expect=$scenario/expected.safetensors
  model=$scenario/train.pt2
  for backend in backend-ref backend-cpu; do
    if head -c 4096 "$expect" | grep -qa '"tangent\.'; then
      for partition in partition-default partition-mincut; do
        status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$model" --expect "$expect" --rtol 1e-5 --atol 1e-6 \
          --set vars.backend=$backend --set vars.partition=$partition
        [ ! -f "$scenario/info.json" ] || status 0 "$layout" "$root/pipelines/verify.yaml" "$model" "$expect" "$scenario/info.json" vars.backend=$backend \
          vars.partition=$partition
      done
    else
      status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model "$model" --expect "$expect" --rtol 1e-5 --atol 1e-6 \
        --set vars.backend=$backend
      [ ! -f "$scenario/info.json" ] || status 0 "$layout" "$root/pipelines/inference.yaml" "$model" "$expect" "$scenario/info.json" vars.backend=$backend
    fi
  done
done
# step_layout can fail: another scenario's description does not fit.
status 1 "$layout" "$root/pipelines/inference.yaml" "$root/tests/fixtures/scenarios/out_view_of_input/train.pt2" \
  "$root/tests/fixtures/scenarios/out_view_of_input/expected.safetensors" "$root/tests/fixtures/scenarios/out_same_twice/info.json" \
  vars.backend=backend-ref
finish
