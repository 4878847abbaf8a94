#!/bin/sh
# hybrid_ranks.sh AOTHOST LOCAL_RANKS ROOT: 4 ranks as a mesh of 2 rows and 2 columns: parameters are shared out over a row, alike in a
# column, and losses are those of one rank.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/ranks_lib.sh"
cat > train.yaml <<END
aot: 1
vars: {backend: backend-ref, partition: partition-mincut}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: fsdp, with: {mode: hybrid, columns: 2}}, {use: autograd}, {use: "\${partition}"}, {use: "\${backend}"}]
run:
  train: {steps: 4, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END
sed 's/{use: "${backend}"}/{use: overlap}, &/' train.yaml > overlapped.yaml

alone 1
whole=$(jq .memory.leaf_bytes one.json)
for backend in ref cpu; do
  alone 4 --set vars.backend=backend-$backend
  together 4 --set vars.backend=backend-$backend
  equal 4 "2 x 2 ranks, $backend"
done
together 4 --set stages.fsdp.replicate-under=0
while read -r bytes; do # half of it, but for what is filled up to whole rows and Adam's count of steps
  [ "$bytes" -ge $((whole / 2)) ] && [ "$bytes" -le $((whole / 2 + 256)) ] || complain "of $whole bytes a rank of 2 x 2 holds $bytes"
done < held
"$local_ranks" 4 overlapped.yaml --set vars.backend=backend-cpu --set run.ranks-with.delay=300 --set run.ranks-with.seed=3 > out 2>&1
sed -n 's/^rank [0-9]* step \([0-9]*\) loss /\1 /p' out > all
alone 4 --set vars.backend=backend-cpu
equal 4 "2 x 2 ranks, overlapped"

# A norm over ranks counts a column's part once; narrow copies; micro steps; rows that no mesh divides evenly.
alone 4 --set run.train.clip-norm=0.05
together 4 --set run.train.clip-norm=0.05
equal 4 "2 x 2 ranks, clipped"
together 4 --set run.train.clip-norm=0.05 --set stages.fsdp.columns=4
equal 4 "one row of 4 ranks"
together 4 --set run.train.clip-norm=0.05 --set stages.fsdp.columns=1
equal 4 "one column of 4 ranks"
alone 4 --set run.train.precision=bf16
together 4 --set run.train.precision=bf16
equal 4 "2 x 2 ranks, bf16"
alone 6
together 6 --set stages.fsdp.columns=3
equal 6 "2 x 3 ranks"
alone 8
together 4 --set run.train.accumulate=2
equal 4 "2 x 2 ranks, micro steps"

# A checkpoint of a mesh goes on as another mesh, and as one rank.
alone 4
cp one wanted
together 4 --set run.train.steps=2 --set run.train.checkpoint.path=saved --set run.train.checkpoint.every=2
together 4 --set run.train.resume=saved --set stages.fsdp.columns=4
awk '$1 > 2' wanted > one
equal 4 "a mesh goes on as one row"
together 4 --set run.train.resume=saved
equal 4 "a mesh goes on"
together 4 --set run.train.resume=saved --set stages.fsdp.mode=replicate
equal 4 "a mesh goes on, replicated"
status 0 "$aothost" export saved --full -o whole.st
together 4 --set run.train.resume=whole.st
equal 4 "a mesh goes on from one file"

# No mesh.
status 2 "$local_ranks" 4 train.yaml --set stages.fsdp.columns=3
says '4 ranks are no mesh with rows of 3'
status 2 "$local_ranks" 4 train.yaml --set stages.fsdp.columns=0
says "mode 'hybrid' needs 'columns'"

# A rank that dies within a row ends those of the other row, too.
status 2 timeout 60 "$local_ranks" 4 train.yaml --set run.ranks-with.patience=5 --on 3:run.ranks-with.die-at=9
says 'rank [0-9] will not come|given up|dies at exchange'
[ "$(grep -c '^rank [0-3] failed' out)" = 4 ] || complain "not all ranks have ended: $(cat out)"
finish
