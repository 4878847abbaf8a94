#!/bin/sh
# planned_ranks.sh AOTHOST LOCAL_RANKS ROOT: what `aothost plan` says that a rank holds, and that collectives bring to it, is what ranks that
# run hold and are brought, to the byte; the arena that is simulated is within a fifth of the backend's.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/ranks_lib.sh"
cat > train.yaml <<'END'
aot: 1
model: {path: none}
stages: [{use: functionalize}, {use: rng}, {use: fsdp, with: {buffers: local}}, {use: autograd}, {use: partition-mincut}, {use: overlap},
  {use: backend-cpu}]
run:
  train: {steps: 2, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END

# received N STEPS SET..: bytes gathered and scattered by the first rank's last of so many steps
received() {
  n=$1 steps=$2; shift 2
  together "$n" "$@" --set run.train.steps=$((steps - 1))
  sed -n 's/^rank 0 .*gathered \([0-9]*\) scattered \([0-9]*\)/\1 \2/p' out > before
  together "$n" "$@" --set run.train.steps="$steps"
  sed -n 's/^rank 0 .*gathered \([0-9]*\) scattered \([0-9]*\)/\1 \2/p' out | paste -d' ' before - | awk '{ print $3 - $1 + $4 - $2 }'
}
# as_planned MODEL N MODE SET..
as_planned() {
  model=$1 n=$2 mode=$3; shift 3
  status 0 "$aothost" plan train.yaml --world "$n,$n" --modes "$mode" -q --json plan.json --set model.path="$model" "$@"
  planned_leaves=$(jq '.plans[0].leaf_bytes' plan.json)
  planned_bytes=$(jq '[.plans[0].collectives[].bytes] | add' plan.json)
  columns=${mode#hybrid:}; [ "$columns" = "$mode" ] && columns=0
  brought=$(received "$n" 3 --set model.path="$model" --set stages.fsdp.mode="${mode%%:*}" --set stages.fsdp.columns="$columns" "$@")
  [ "$(sort -u held)" = "$planned_leaves" ] || complain "$model, $n ranks, $mode: a rank holds $(sort -u held) bytes, planned $planned_leaves"
  [ "$brought" = "$planned_bytes" ] || complain "$model, $n ranks, $mode: a step brings $brought bytes, planned $planned_bytes"
  arena=$(sed -n 's/^rank 0 .* arena \([0-9]*\) .*/\1/p' out)
  simulated=$(jq '.plans[0].arena_bytes' plan.json)
  [ $((5 * arena)) -le $((6 * simulated)) ] && [ $((5 * simulated)) -le $((6 * arena)) ] ||
    complain "$model, $n ranks, $mode: a rank's arena has $arena bytes, simulated $simulated"
  [ "$brought" -gt 0 ] || complain "$model, $n ranks, $mode: nothing is brought"
}

for mode in shard shard-grad replicate; do as_planned "$models/gpt_tiny/train.pt2" 2 $mode; done
for mode in shard replicate hybrid:2; do as_planned "$models/gpt_tiny/train.pt2" 4 $mode; done
as_planned "$models/gpt_tiny/train.pt2" 4 hybrid:2 --set stages.fsdp.replicate-under=0 --set run.train.clip-norm=0.05
as_planned "$models/resnet_tiny/train.pt2" 3 shard --set run.train.precision=bf16
as_planned "$models/gpt_tiny/train.pt2" 3 shard --set run.train.precision=bf16 --set stages.overlap.exchange=1
jq -e '[.plans[0].collectives[] | select(.by == "exchange" and .bytes > 0)] | length > 0' plan.json > jq.out || complain "nothing is exchanged: $(cat plan.json)"
as_planned "$models/resnet_tiny/train.pt2" 2 shard-grad --set run.train.clip-norm=0.05
finish
