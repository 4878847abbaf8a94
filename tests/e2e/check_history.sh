#!/bin/sh
# Gradient histories around no_grad: tests/fixtures/history/README.md says what each program does.
. "$(dirname "$0")/lib.sh"
for program in "$root"/tests/fixtures/history/*/; do
  for backend in backend-ref backend-cpu; do
    status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$program/train.pt2" --expect "$program/expected.safetensors" \
      --set vars.backend=$backend
  done
done
finish
