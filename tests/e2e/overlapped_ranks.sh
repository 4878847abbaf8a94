#!/bin/sh
# overlapped_ranks.sh AOTHOST LOCAL_RANKS ROOT: with the stage overlap, collectives go on while ranks compute, together or each alone, early
# or late; losses stay those of one rank. What runs beside what is told by unit_under_way, the order of nodes by goldens_overlap.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/ranks_lib.sh"
cat > train.yaml <<END
aot: 1
vars: {backend: backend-ref, partition: partition-mincut}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: rng}, {use: fsdp, with: {buffers: local}}, {use: autograd}, {use: "\${partition}"}, {use: overlap},
  {use: "\${backend}"}]
run:
  train: {steps: 6, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END

# Ranks come late and take each other's pieces in other orders, so that collectives are under way for long.
late='--set run.ranks-with.delay=300 --set run.ranks-with.seed=5'
for backend in ref cpu; do
  alone 3 --set vars.backend=backend-$backend
  for mode in shard shard-grad replicate; do
    # shellcheck disable=SC2086
    together 3 --set vars.backend=backend-$backend --set stages.fsdp.mode=$mode --set stages.overlap.bucket=8KiB --set stages.overlap.ahead=16KiB $late
    equal 3 "overlapped, $backend, $mode"
  done
done
together 3 --set vars.backend=backend-cpu --set stages.overlap.bucket=0 --set stages.overlap.ahead=0 --set vars.partition=partition-default
equal 3 "each alone"
together 3 --set vars.backend=backend-cpu --set stages.fsdp.replicate-under=0
equal 3 "all together"
for backend in ref cpu; do # kernels that only start work on copies until they are waited for
  # shellcheck disable=SC2086
  AOT_VALIDATE=1 together 3 --set vars.backend=backend-$backend --set stages.overlap.bucket=8KiB $late
  equal 3 "overlapped, $backend, looked at"
done

# What else takes part: a norm over ranks, micro steps, narrow copies, steps that are not taken, statistics, dropout.
alone 2 --set run.train.clip-norm=0.05
together 2 --set run.train.clip-norm=0.05
equal 2 "clipped"
alone 4
together 2 --set run.train.accumulate=2
equal 2 "micro steps"
alone 2 --set run.train.precision=bf16
together 2 --set run.train.precision=bf16
equal 2 "bf16"
for backend in ref cpu; do # gradients in bf16 are exchanged, and added up where they are read
  alone 3 --set run.train.precision=bf16 --set vars.backend=backend-$backend
  # shellcheck disable=SC2086
  together 3 --set run.train.precision=bf16 --set vars.backend=backend-$backend --set stages.overlap.exchange=1 --set stages.overlap.bucket=8KiB $late
  equal 3 "exchanged, $backend"
done
rows='--set run.train.precision=bf16 --set run.train.clip-norm=0.05 --set stages.fsdp.mode=hybrid --set stages.fsdp.columns=2'
for exchange in 0 1; do # of rows of a mesh, the same bits
  # shellcheck disable=SC2086
  together 4 $rows --set stages.overlap.exchange=$exchange
  cp all all.$exchange
done
same all.0 all.1
alone 2 --set run.train.precision=bf16
together 2 --set run.train.precision=bf16 --set stages.fsdp.reduce=gathered
awk 'FNR == NR { one[$1] = $2; next } { d = $2 / one[$1] - 1; if (d * d > 1e-6) exit 1 }' one all || complain "added up in bf16, losses are far off"
scaled="--set run.train.precision=f16 --set run.train.loss-scale=dynamic --set run.train.loss-scale-with.init=2e5"
# shellcheck disable=SC2086
alone 2 $scaled
# shellcheck disable=SC2086
together 2 $scaled
equal 2 "steps that are not taken"
alone 2 --set model.path="$models/resnet_tiny/train.pt2"
together 2 --set model.path="$models/resnet_tiny/train.pt2"
equal 2 "batch norm"
alone 3 --set model.path="$root/tests/models/dropout_gpt/train.pt2" --set run.train.steps=3
together 3 --set model.path="$root/tests/models/dropout_gpt/train.pt2" --set run.train.steps=3
equal 3 "dropout"

# One rank has nothing to do, and where forward and backward stay apart the stage is left out.
status 0 "$aothost" run train.yaml --no-cache
status 2 "$aothost" run train.yaml --no-cache --set run.train.step=three-graphs
says 'overlap requires a program that is stitched'

# A rank that is gone while others compute.
status 2 timeout 60 "$local_ranks" 3 train.yaml --on 1:run.ranks-with.die-at=20
says 'aot\.(wait_for_ranks|start_[a-z_]+)[^:]*: .*exchange 20: rank 1 will not come: it has left \(told by rank [02]\)'
status 2 timeout 60 "$local_ranks" 3 train.yaml --set run.ranks-with.patience=2 --on 2:run.ranks-with.hang-at=21
says 'exchange 21: rank 2 was not heard of in time \(told by rank [01]\)'
finish
