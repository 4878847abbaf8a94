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
step() { # BUDGET SETTINGS-OF-THE-DOUBLE [OPTIONS]
  budget=$1 settings=$2; shift 2
  AOT_CUDA_DOUBLE=$settings "$aothost" run budget.yaml --model "$m/train.pt2" --inputs "$m/expected.safetensors" --grads -q \
    --set vars.budget="$budget" --outputs given --json json "$@"
}

status 0 step 1.0 peak=first
all=$(number measured-peak-bytes)
status 0 step 0.8 peak=second
less=$(number measured-peak-bytes)
[ "${less:-0}" -gt 0 ] && [ $((10 * less)) -le $((8 * all)) ] || complain "$all bytes with a budget of 1.0, $less with 0.8"
saved=$(($(cat first) - $(cat second) - (all - less)))
# pools are taken apart after the partition, which does not know of the parts' places: a tenth is theirs
[ $((10 * ${saved#-})) -le $((all - less)) ] || complain "the device has $(cat first) and $(cat second) bytes, the plans $all and $less"
cp given whole
status 0 step 0.8 "memory=$(cat second)"
same whole given
status 2 step 1.0 "memory=$(cat second)"
says 'hint: with --no-cache what holds the memory is named'
status 2 step 1.0 "memory=$(cat second)" --no-cache
says 'has no memory for [0-9]+ bytes: [0-9]+ of its [0-9]+ are free'
says 'a step takes [0-9.]+ [KM]iB beside parameters and optimizer states: an arena of [0-9.]+ KiB.*: .*m(\.[a-z0-9]+)+ [0-9.]+ KiB, '
says 'hint: partition-mincut with .objective: memory. and a .budget.'
says '(the arena of .* takes|the program.s boundary take) [0-9]+ bytes'
status 2 step 0.1 peak=none
says 'the smallest peak found is [0-9]+ bytes'

# attention as one kernel forward and backward, in two graphs
sed 's/- use: autograd/- use: autocast\n  - use: autograd/' budget.yaml > half.yaml && mv half.yaml budget.yaml
m=$models/gpt_tiny
for budget in 1.0 0.8; do
  status 0 step $budget peak=none
  [ "$(number measured-peak-bytes)" -le "$(number budget-bytes)" ] || complain "$(number measured-peak-bytes) bytes are above the budget"
done

# a backend that keeps less than the simulation knows of, here scores in chunks of rows, is believed: a fraction is of what it
# keeps, and the first plan that it has room for is taken
cat > head.ir <<'END'
aot 1
properties imported
leaf 0 parameter "w" : f32[24, 4] grad
leaf 1 parameter "p" : f32[4, 4] grad
leaf 2 user_input 0 "x" : f32[8, 1024, 4]
leaf 3 user_input 1 "labels" : i64[8192]
graph @main forward {
  in %w = parameter 0 : f32[24, 4] grad
  in %p = parameter 1 : f32[4, 4] grad
  in %x = user_input 2 : f32[8, 1024, 4]
  in %labels = user_input 3 : i64[8192]
  %y0 : f32[8, 1024, 4] = aten.linear.default %x, %p, none
  %a1 : f32[8, 1024, 4] = aten.sin.default %y0
  %y1 : f32[8, 1024, 4] = aten.linear.default %a1, %p, none
  %a2 : f32[8, 1024, 4] = aten.sin.default %y1
  %y2 : f32[8, 1024, 4] = aten.linear.default %a2, %p, none
  %a3 : f32[8, 1024, 4] = aten.sin.default %y2
  %y3 : f32[8, 1024, 4] = aten.linear.default %a3, %p, none
  %a4 : f32[8, 1024, 4] = aten.sin.default %y3
  %y4 : f32[8, 1024, 4] = aten.linear.default %a4, %p, none
  %a5 : f32[8, 1024, 4] = aten.sin.default %y4
  %y5 : f32[8, 1024, 4] = aten.linear.default %a5, %p, none
  %a6 : f32[8, 1024, 4] = aten.sin.default %y5
  %y6 : f32[8, 1024, 4] = aten.linear.default %a6, %p, none
  %h : f32[8, 1024, 4] = aten.tanh.default %y6
  %scores : f32[8, 1024, 24] = aten.linear.default %h, %w, none
  %rows : f32[8192, 24] = aten.view.default %scores, [-1, 24]
  %loss : f32[] = aten.cross_entropy_loss.default %rows, %labels, none, 1, -100, 0.0
  out user_output 0 "loss" = %loss
}
END
sed -e 's/- use: autocast//' -e 's/algorithms: first/algorithms: first, chunk-bytes: 256KiB/' \
  -e 's/run: .*/run: {device: cuda, train: {steps: 1, data: random}}/' budget.yaml > head.yaml
number_of() { sed -n "s/^ *$1: \([-0-9.e+]*\).*/\1/p" out | head -1; }
told() { number_of "$1" | awk '{printf "%d", $1}'; }
for budget in 1.0 0.9; do
  status 0 "$aothost" inspect head.yaml --model head.ir --memory --time --set vars.budget=$budget --json plan.json
  [ "$(told measured-peak-bytes)" -le "$(told budget-bytes)" ] || complain "$(told measured-peak-bytes) bytes with $budget"
  [ "$(told peak-bytes)" -gt "$(told all-saved-peak-bytes)" ] || complain "the simulation knows of chunks of rows"
  says 'row-chunks: 2'
done

# less memory for a part of the step's time: more of it buys more, and none buys nothing
before=$(told all-saved-peak-bytes)
for part in 0 0.05 0.2; do
  status 0 "$aothost" inspect head.yaml --model head.ir --memory --time --set vars.budget=1.0 --set stages.partition-mincut.extra-time=$part
  awk -v cost="$(number_of recompute-cost)" -v step="$(number_of step-cost)" -v part=$part 'BEGIN { exit !(step > 0 && cost <= part * step) }' ||
    complain "$(number_of recompute-cost) s again are more than $part of $(number_of step-cost) s"
  [ $part = 0 ] || [ "$(told measured-peak-bytes)" -lt "$before" ] || complain "$part of the time buys nothing: $(told measured-peak-bytes) bytes"
  before=$(told measured-peak-bytes)
done
finish
