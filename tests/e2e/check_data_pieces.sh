#!/bin/sh
# Pieces of tensors whose sizes and places are data, in training: split, cat, narrow, select, full, rows that a mask takes
# (tests/fixtures/found2/data_pieces), on backend-cpu with threads, over both partitioners, and on the CUDA double.
. "$(dirname "$0")/lib.sh"
export MALLOC_PERTURB_=170
cat > cpu.yaml <<'END_OF_FILE'
aot: 1
vars: {threads: 1, partition: partition-mincut}
stages: [{use: functionalize}, {use: autograd}, {use: "${partition}"}, {use: backend-cpu, with: {threads: "${threads}"}}]
END_OF_FILE
for expect in "$root"/tests/fixtures/found2/data_pieces/*/expected.safetensors; do
  model=$(dirname "$expect")/train.pt2
  status 0 "$aothost" verify cpu.yaml --model "$model" --expect "$expect" --set vars.threads=2 --set vars.partition=partition-default
  status 0 "$aothost" verify cpu.yaml --model "$model" --expect "$expect" --set vars.threads=4
  status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$model" --expect "$expect" \
    --set vars.backend=backend-cuda --set run.device=cuda
done
finish
