#!/bin/sh
# What is saved and what is computed again changes no bit: on random programs, gradients and loss with partition-mincut under every
# rule equal those with partition-default on backend-ref. check_gradients.sh AOTHOST RANDOM_PROGRAM [PROGRAMS]
aothost=$1; generate=$2; programs=${3:-16}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export AOT_CACHE=off
failed=0
run() { # NAME UNIT-WITH-OPTIONS
  cat > p.yaml <<P
aot: 1
stages: [{use: functionalize}, {use: autograd}, $2, {use: backend-ref}]
run: {inputs: random}
P
  "$aothost" run p.yaml --model program.ir --grads --outputs "$1.safetensors" > out 2>&1 || { echo "FAILED: $1, seed $seed"; tail -5 out; failed=1; }
}
seed=0
while [ "$seed" -lt "$programs" ]; do
  seed=$((seed + 1))
  "$generate" $seed $((4 + seed * 3)) > program.ir
  run plain "{use: partition-default}"
  for options in "" "operators: pytorch, ban-long-chains: true" "ban-expensive: false, ban-heavy: false, ban-materialized: false, ban-reductions: false, ban-far-apart: false" \
      "merge-equal: false, ties: nearest-backward" "recompute-views: true, distance-base: 1.0, double-fused: false"; do
    run cut "{use: partition-mincut, with: {$options}}"
    cmp -s plain.safetensors cut.safetensors || { echo "FAILED: seed $seed, {$options}: other bits"; failed=1; }
  done
done
[ "$failed" = 0 ] && echo "$seed programs: the same bits"
exit $failed
