#!/bin/sh
# ranks.sh AOTHOST LOCAL_RANKS ROOT: several ranks train as one rank does that takes their batches as micro steps, each with its part of
# parameters and states. The ranks are threads of one process (comm-local).
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/ranks_lib.sh"
cat > train.yaml <<EOF
aot: 1
vars: {backend: backend-ref, partition: partition-default}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: fsdp}, {use: autograd}, {use: "\${partition}"}, {use: "\${backend}"}]
run:
  train: {steps: 6, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
EOF

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

# One norm of all gradients, small enough that every step is clipped by it; one decision whether a step is taken.
alone 3 --set run.train.clip-norm=0.05
together 3 --set run.train.clip-norm=0.05
equal 3 "clipped"
together 3 --set run.train.clip-norm=0.05 --set stages.fsdp.mode=replicate
equal 3 "clipped, replicated"
scaled="--set run.train.precision=f16 --set run.train.loss-scale=dynamic --set run.train.loss-scale-with.init=2e5"
alone 2 $scaled
skipped=$(jq .train.skipped one.json)
[ "$skipped" -gt 0 ] && [ "$skipped" -lt 6 ] || complain "$skipped of 6 steps were skipped"
together 2 $scaled
equal 2 "steps that are not taken"
# Mixed precision: parameters are gathered in bf16, which halves what forward and backward fetch; gradients are added up in f32, as micro
# steps do, or in bf16.
gathered() { sed -n 's/^rank 0 .*gathered \([0-9]*\).*/\1/p' out; }
together 2
wide=$(gathered)
alone 2 --set run.train.precision=bf16
together 2 --set run.train.precision=bf16
equal 2 "bf16"
[ $((2 * $(gathered))) -lt $((wide * 6 / 5)) ] || complain "in bf16 $(gathered) bytes are gathered, in f32 $wide"
together 2 --set run.train.precision=bf16 --set stages.fsdp.reduce=gathered
awk 'FNR == NR { one[$1] = $2; next } { d = $2 / one[$1] - 1; if (d * d > 1e-6) exit 1 }' one all || complain "added up in bf16, losses are far off"
# Statistics of batch norm stay each rank's own.
alone 2 --set model.path="$models/resnet_tiny/train.pt2"
together 2 --set model.path="$models/resnet_tiny/train.pt2" --set stages.fsdp.buffers=local
equal 2 "batch norm"
# Dropout: masks are those of one rank.
sed 's/{use: fsdp}/{use: rng}, {use: fsdp}/' train.yaml > plain.yaml && mv plain.yaml train.yaml
for model in dropout_gpt dropout_vit dropout_bert; do
  alone 3 --set model.path="$root/tests/models/$model/train.pt2" --set run.train.steps=3
  together 3 --set model.path="$root/tests/models/$model/train.pt2" --set run.train.steps=3
  equal 3 "$model"
done

# What cannot be right is said.
sed 's/{use: fsdp}, //' train.yaml > no_stage.yaml
status 2 "$local_ranks" 2 no_stage.yaml
says '2 ranks, but no stage shards the program'
status 2 "$local_ranks" 2 train.yaml --set model.path="$models/resnet_tiny/train.pt2"
says 'the forward writes buffers \(batch norm'

# Ranks that are not alike: who differs, in what.
status 2 "$local_ranks" 3 train.yaml --on 1:run.train.lr=0.02
says 'the pipeline of rank 1 differs from that of rank 0 \(reported by rank 2\)'
says '^ *rank 0: lr: 0.01$'
says '^ *rank 1: lr: 0.02$'
status 2 "$local_ranks" 2 train.yaml --on 1:model.path="$root/tests/models/dropout_gpt/train.pt2"
says 'of rank 1 differs from that of rank 0 \(reported by rank 0\)'

# A rank that dies or hangs ends the others, which name it, what they were at, and where.
status 2 timeout 60 "$local_ranks" 3 train.yaml --on 1:run.ranks-with.die-at=41
says 'exchange 41: rank 1 will not come: it has left \(told by rank [02]\)'
says 'note: the run stops at step'
grep -q 'keeps a reproduction' out && complain 'a stage was blamed for a rank that has left'
status 2 timeout 60 "$local_ranks" 3 train.yaml --set run.ranks-with.patience=2 --on 2:run.ranks-with.hang-at=51 \
  --set run.ranks-with.record=last
says 'exchange 51: rank 2 was not heard of in time \(told by rank [01]\)'
says '_c10d_functional'
# .. with the last collectives of each.
for r in 0 1 2; do
  has last.$r "^rank $r: .*"
  has last.$r '^exchange 4[0-9]  [a-z_]+  [0-9]+ bytes  began [0-9.]+ s before the end, took [0-9.e+-]+ ms'
  has last.$r '^exchange 51  .* did not end'
done
finish
