#!/bin/sh
# cuda_nccl.sh AOTHOST - ROOT: ranks that are processes with a GPU each (its double), whose collectives NCCL (its double) does on the
# device's queue: losses are those of one process; a rank that is killed, hangs or does not come ends the others with a reason.
. "$(dirname "$0")/lib.sh"
export AOT_CACHE_DIR="$dir/cache"
cat > train.yaml <<END
aot: 1
vars: {model: mlp, backend: backend-cuda, mode: shard}
model: {path: "$models/\${model}/train.pt2"}
stages: [{use: functionalize}, {use: fsdp, with: {mode: "\${mode}", replicate-under: 64}}, {use: autograd}, {use: partition-mincut}, {use: "\${backend}"}]
run:
  ranks: comm-nccl
  ranks-with: {rendezvous: $dir/meeting, patience: 120}
  device: cuda
  train: {steps: 3, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END
losses() { sed -n 's/.*\(step [0-9]*\/[0-9]*\)  loss \([0-9.]*\)  lr.*/\1 \2/p' "$1"; }
# ranks N SET..: N processes, rank R's words in out.R; status.R
ranks() {
  n=$1; shift
  for r in $(seq 0 $((n - 1))); do
    { WORLD_SIZE=$n RANK=$r timeout 300 "$aothost" run train.yaml "$@" > "out.$r" 2>&1 && echo 0 > "status.$r" || echo $? > "status.$r"; } &
  done
  wait
}
for model in mlp gpt_tiny; do
  status 0 "$aothost" run train.yaml --set run.train.accumulate=2 --set vars.model=$model
  losses out > one
  [ "$(wc -l < one)" = 3 ] || complain "one process printed $(wc -l < one) losses"
  for mode in shard replicate; do
    ranks 2 --set vars.model=$model --set vars.mode=$mode
    [ "$(cat status.0 status.1)" = "$(printf '0\n0')" ] || { complain "$model, $mode: $(cat out.0 out.1)"; }
    losses out.0 > two
    same one two
    grep -q 'run.* on the host, with copies there and back' out.0 && complain "$model, $mode: collectives run on the host"
    has out.0 'rank 1: parameters and state'
  done
done
# Behind the stage overlap: what it starts goes on beside kernels (cuda_overlap.sh).
sed 's/{use: "${backend}"}/{use: overlap}, &/' train.yaml > overlapped.yaml
status 0 "$aothost" run train.yaml --set run.train.accumulate=2
losses out > one
cp train.yaml plain.yaml && cp overlapped.yaml train.yaml
ranks 2
[ "$(cat status.0 status.1)" = "$(printf '0\n0')" ] || complain "overlapped: $(cat out.0)"
has out.0 '^overlap '
losses out.0 > two
same one two
grep -q 'on the host, with copies there and back' out.0 && complain "overlapped: collectives run on the host"
# One rank by itself, with collectives of one: what a machine with one GPU can try.
status 0 "$aothost" run plain.yaml
losses out > one
for mode in shard shard-grad replicate; do
  status 0 "$aothost" run train.yaml --set vars.mode=$mode --set stages.fsdp.alone=true --time
  has out '^  started-collectives: [1-9]'
  losses out > alone
  same one alone
done
cp plain.yaml train.yaml

# A mesh: collectives of rows and of columns, each with a communicator of NCCL's own.
status 0 "$aothost" run train.yaml --set run.train.accumulate=4
losses out > one
ranks 4 --set vars.mode=hybrid --set stages.fsdp.columns=2
[ "$(cat status.*)" = "$(printf '0\n0\n0\n0')" ] || complain "a mesh: $(cat out.0)"
losses out.0 > four
same one four

# A collective that never comes: both ranks say at which they were, and end.
export AOT_NCCL_DOUBLE=hang-at=7
ranks 2 --set run.ranks-with.patience=8 --set run.ranks-with.record=last
unset AOT_NCCL_DOUBLE
[ "$(cat status.0 status.1)" = "$(printf '2\n2')" ] || complain "a collective that hangs: $(cat status.0 status.1) $(cat out.0)"
has out.0 'a collective has not ended within 8 s; rank [01] was at [a-z_]+ of [0-9]+ bytes, collective 7 of the program'
has out.0 'the run stops at step'
has last.0 'rank 0: '

# An error that NCCL tells meanwhile, long before patience is over.
export AOT_NCCL_DOUBLE=fail-at=7
ranks 2
unset AOT_NCCL_DOUBLE
[ "$(cat status.0 status.1)" = "$(printf '2\n2')" ] || complain "an error of NCCL: $(cat status.0 status.1) $(cat out.0)"
cat out.0 out.1 > out
says 'NCCL has failed: remote process exited or there was a network error; rank [01] was at [a-z_]+ of [0-9]+ bytes, collective 7 of the program'

# NCCL's own meeting place is that of all ranks, and of no part of them.
export NCCL_COMM_ID=127.0.0.1:$((20000 + $$ % 20000))
ranks 2
[ "$(cat status.0 status.1)" = "$(printf '0\n0')" ] || complain "NCCL_COMM_ID: $(cat out.0)"
ranks 4 --set vars.mode=hybrid --set stages.fsdp.columns=2
cat out.? > out
says 'NCCL_COMM_ID is one meeting place'
unset NCCL_COMM_ID

# What a launcher tells: the device of a rank on its machine.
RANK=0 WORLD_SIZE=1 LOCAL_RANK=5 AOT_CUDA_DOUBLE=devices=2 status 2 "$aothost" run train.yaml
says 'there is no device cuda 5: the driver has 2, counted from 0'
RANK=0 WORLD_SIZE=1 LOCAL_RANK=1 AOT_CUDA_DOUBLE=devices=2 status 0 "$aothost" run train.yaml
RANK=0 WORLD_SIZE=1 LOCAL_RANK=5 status 0 "$aothost" run train.yaml

# A rank that is killed: the other knows within seconds, whatever its patience.
WORLD_SIZE=2 RANK=0 "$aothost" run train.yaml --set run.train.steps=100000 > out.0 2>&1 & first=$!
WORLD_SIZE=2 RANK=1 "$aothost" run train.yaml --set run.train.steps=100000 > out.1 2>&1 & second=$!
for _ in $(seq 600); do grep -q 'step 5/' out.0 && break; sleep 0.1; done
has out.0 'step 5/'
kill -KILL $second
{ sleep 15; kill -KILL $first; } > /dev/null 2>&1 & guard=$!
wait $first && complain "the first rank ended well without the second" || code=$?
[ "$code" = 2 ] || complain "the first rank ended with $code: $(cat out.0)"
kill $guard 2> /dev/null
cp out.0 out
says 'rank 1 has ended \(process [0-9]+\), told by rank 0'

# Nobody comes; no library.
WORLD_SIZE=2 RANK=0 status 2 "$aothost" run train.yaml --set run.ranks-with.patience=1
says 'rank 0 of 2: nothing was seen of rank 1 at .*meeting within 1 s'
WORLD_SIZE=2 RANK=0 status 2 "$aothost" run train.yaml --set run.ranks-with.rendezvous=$dir/none/meeting
says 'rank 0 of 2 cannot make .*none/meeting, where the ranks meet: No such file or directory'
WORLD_SIZE=2 RANK=2 status 2 "$aothost" run train.yaml --set run.ranks-with.patience=1
says 'rank 2 of 2: ranks count from 0'
status 2 "$aothost" run train.yaml --set run.ranks-with.library=none.so
says "NCCL cannot be opened: none.so: .*'library'"
AOT_NCCL_DOUBLE=version=21600 status 2 "$aothost" run train.yaml
says 'is NCCL 2.16, and 2.18 or later is needed'
finish
