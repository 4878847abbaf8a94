#!/bin/sh
# Loops as torch.export writes them, with counts that hang on the numbers: under both partitioners and both backends.
. "$(dirname "$0")/lib.sh"
for loop in "$root"/tests/fixtures/loops/*/; do
  expects=""
  for e in "$loop"expected*.safetensors; do expects="$expects --expect $e"; done
  for backend in backend-ref backend-cpu; do
    for partition in partition-default partition-mincut; do
      status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$loop/train.pt2" $expects --rtol 1e-5 --atol 1e-5 \
        --set vars.backend=$backend --set vars.partition=$partition
    done
  done
done
finish
