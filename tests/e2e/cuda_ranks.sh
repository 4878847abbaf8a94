#!/bin/sh
# cuda_ranks.sh AOTHOST - ROOT MPIRUN: ranks whose programs run on a GPU (its double), one a process: their losses are those of one process
# on the CPU. Collectives go through the host's memory.
. "$(dirname "$0")/lib.sh"
mpirun=$4
set_up_mpi
cat > train.yaml <<END
aot: 1
vars: {backend: backend-cpu}
model: {path: $models/mlp/train.pt2}
stages: [{use: functionalize}, {use: fsdp, with: {replicate-under: 64}}, {use: autograd}, {use: partition-mincut}, {use: "\${backend}"}]
run:
  ranks: comm-mpi
  train: {steps: 3, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END
losses() { sed -n 's/.*\(step [0-9]*\/[0-9]*\)  loss \([0-9.]*\)  lr.*/\1 \2/p' "$1"; }
cuda='--set vars.backend=backend-cuda --set run.device=cuda'
status 0 "$aothost" run train.yaml --set run.train.accumulate=2
losses out > one
[ "$(wc -l < one)" = 3 ] || complain "one process printed $(wc -l < one) losses"
# shellcheck disable=SC2086
for mode in shard replicate; do
  status 0 timeout 300 "$mpirun" -n 2 "$aothost" run train.yaml $cuda --set stages.fsdp.mode=$mode
  losses out > two
  same one two
done
says 'rank 1: parameters and state'
# shellcheck disable=SC2086
status 2 "$aothost" run train.yaml $cuda --set stages.fsdp.ranks=2 --set run.ranks=none
says 'takes other ranks: name a communicator in run.ranks'
finish
