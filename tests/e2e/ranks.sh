#!/bin/sh
# ranks.sh AOTHOST LOCAL_RANKS ROOT: several ranks train as one rank does that takes their batches as micro steps, each with its part of
# parameters and states. The ranks are threads of one process (comm-local). jq reads the one rank's losses.
. "$(dirname "$0")/lib.sh"
local_ranks=$edit
cat > train.yaml <<EOF
aot: 1
vars: {backend: backend-ref, partition: partition-default}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: fsdp}, {use: autograd}, {use: "\${partition}"}, {use: "\${backend}"}]
run:
  train: {steps: 6, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
EOF

# alone N SET..: losses of one rank whose steps are N micro steps, to `one`
alone() {
  n=$1; shift
  "$aothost" run train.yaml --no-cache --json one.json --set run.train.accumulate="$n" "$@" > out 2>&1 || { complain "alone $n $*"; cat out; }
  jq -r '.train.log[] | "\(.step) \(.loss)"' one.json > one
}
# together N SET..: those of N ranks to `all`, one line a rank and step; what each held to `held`
together() {
  n=$1; shift
  "$local_ranks" "$n" train.yaml "$@" > out 2>&1 || { complain "together $n $*"; head -20 out; }
  sed -n 's/^rank [0-9]* step \([0-9]*\) loss /\1 /p' out > all
  sed -n 's/^rank [0-9]* leaves \([0-9]*\) .*/\1/p' out > held
}
# equal N WHAT: every rank has told every loss of the one, to 1e-6
equal() {
  awk -v n="$1" 'FNR == NR { one[$1] = $2; steps++; next }
    { rows++; d = $2 - one[$1]; if (d < 0) d = -d; if (!($1 in one) || d > 1e-6 * one[$1]) { print "step " $1 ": " $2 " and " one[$1]; bad = 1 } }
    END { exit bad || rows != n * steps || steps == 0 }' one all > differ || { complain "$2: losses differ"; cat differ; }
}

for n in 2 3; do
  for backend in ref cpu; do
    alone $n --set vars.backend=backend-$backend
    for mode in shard shard-grad replicate; do
      together $n --set vars.backend=backend-$backend --set stages.fsdp.mode=$mode
      equal $n "$n ranks, $backend, $mode"
    done
    together $n --set vars.backend=backend-$backend --set vars.partition=partition-mincut --set stages.fsdp.replicate-under=0
    equal $n "$n ranks, $backend, min-cut, everything in parts"
  done
done

# What a rank holds of parameters and two moments each: an n-th, but for what is filled up to whole rows and Adam's count of steps.
alone 1
whole=$(jq .memory.leaf_bytes one.json)
together 2 --set stages.fsdp.replicate-under=0
while read -r bytes; do
  [ "$bytes" -ge $((whole / 2)) ] && [ "$bytes" -le $((whole / 2 + 256)) ] || complain "of $whole bytes a rank of two holds $bytes"
done < held
together 2 --set stages.fsdp.mode=replicate
[ "$(sort -u held)" = "$whole" ] || complain "replicated, ranks hold $(cat held) instead of $whole bytes"

# Ranks that come late, and take each other's pieces in other orders: the same losses.
alone 3
together 3 --set run.ranks-with.delay=500 --set run.ranks-with.seed=7
equal 3 "ranks that are late"
# Micro steps of each rank.
alone 4
together 2 --set run.train.accumulate=2
equal 2 "two ranks with two micro steps each"

# What is not there yet, or cannot be right, is said.
status 2 "$local_ranks" 2 train.yaml --set run.train.checkpoint=last.st
says 'checkpoints of several ranks are neither written nor read yet'
sed 's/{use: fsdp}, //' train.yaml > no_stage.yaml
status 2 "$local_ranks" 2 no_stage.yaml
says '2 ranks run the pipeline, but no stage shares the program out'
status 2 "$local_ranks" 2 train.yaml --set model.path="$models/resnet_tiny/train.pt2"
says 'the forward writes buffers \(batch norm'
status 2 "$local_ranks" 2 train.yaml --set model.path="$root/tests/models/dropout_gpt/train.pt2"
says 'it draws random numbers, which would be the same on every rank'
finish
