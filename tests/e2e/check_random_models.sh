#!/bin/sh
# Random PyTorch programs (tools/random_models.py) with what PyTorch computes for them, on both backends under both partitioners. A
# folder is named by its seed; src.py beside it is the program. `tools/nightly` makes and runs thousands of others.
. "$(dirname "$0")/lib.sh"
for folder in "$root"/tests/fixtures/random/*/; do
  # half precision is rounded at every step by one, at the end by the other
  close=""; grep -qE 'float16' "$folder/src.py" && close="--rtol 5e-2 --atol 5e-2"
  head -c 4096 "$folder/expected.safetensors" | grep -qaE 'F16|BF16' && close="--rtol 5e-2 --atol 5e-2"
  for backend in backend-ref backend-cpu; do
    for partition in partition-default partition-mincut; do
      status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$folder/train.pt2" --expect "$folder/expected.safetensors" $close \
        --set vars.backend=$backend --set vars.partition=$partition
      head -c 4096 "$folder/expected.safetensors" | grep -qa '"grad\.' || break # nothing is divided
    done
  done
done
[ "$(ls -d "$root"/tests/fixtures/random/*/ | wc -l)" -gt 30 ] || complain "programs are missing"
finish
