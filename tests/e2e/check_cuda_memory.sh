#!/bin/sh
# Budgets on a GPU: partition-mincut plans against what backend-cuda tells, the run takes that much less on the device, and a
# device that has no byte less than that is enough.
. "$(dirname "$0")/lib.sh"
m=$models/resnet_tiny
cat > budget.yaml <<'END'
aot: 1
vars: {budget: "1.0"}
stages:
  - use: functionalize
  - use: autograd
  - {use: partition-mincut, with: {objective: memory, budget: "${budget}"}}
  - {use: backend-cuda, with: {algorithms: first}}
run: {device: cuda}
END
number() { tr -d ' \n' < json | sed -n "s/.*\"$1\":{\"value\":\([-0-9.e+]*\).*/\1/p" | sed 's/\.0$//'; }
step() { # BUDGET SETTINGS-OF-THE-DOUBLE
  AOT_CUDA_DOUBLE=$2 "$aothost" run budget.yaml --model "$m/train.pt2" --inputs "$m/expected.safetensors" --grads -q \
    --set vars.budget="$1" --outputs given --json json
}

status 0 step 1.0 peak=first
all=$(number measured-peak-bytes)
status 0 step 0.8 peak=second
less=$(number measured-peak-bytes)
[ "${less:-0}" -gt 0 ] && [ $((10 * less)) -le $((8 * all)) ] || complain "$all bytes with a budget of 1.0, $less with 0.8"
saved=$(($(cat first) - $(cat second) - (all - less)))
[ "${saved#-}" -le 1024 ] || complain "the device has $(cat first) and $(cat second) bytes, the plans $all and $less"
cp given whole
status 0 step 0.8 "memory=$(cat second)"
same whole given
status 2 step 1.0 "memory=$(cat second)"
says 'has no memory for [0-9]+ bytes: [0-9]+ of its [0-9]+ are free'
says '(the arena of .* takes|the program.s boundary take) [0-9]+ bytes'
status 2 step 0.1 peak=none
says 'the least is [0-9]+ bytes'
finish
