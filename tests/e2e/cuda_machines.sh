#!/bin/sh
# cuda_machines.sh AOTHOST - ROOT: ranks of several machines, which have an address in common and no file: two "machines" are two groups of
# processes with folders of their own, told who they are as torchrun or srun tell it. Losses are those of one process; an address
# that cannot be, a port that is taken, ranks that do not come, differ or die each end with a reason.
. "$(dirname "$0")/lib.sh"
cat > train.yaml <<END
aot: 1
vars: {model: mlp, mode: shard}
model: {path: "$models/\${model}/train.pt2"}
stages: [{use: functionalize}, {use: fsdp, with: {mode: "\${mode}", replicate-under: 64}}, {use: autograd}, {use: partition-mincut}, {use: backend-cuda}]
run:
  ranks: comm-nccl
  ranks-with: {patience: 120}
  device: cuda
  train: {steps: 3, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END
export AOT_CUDA_DOUBLE=devices=2
losses() { sed -n 's/.*\(step [0-9]*\/[0-9]*\)  loss \([0-9.]*\)  lr.*/\1 \2/p' "$1"; }
port=$((20000 + 2 * ($$ % 6000)))
launcher=torchrun
exec=
# as RANK MACHINE LOCAL COMMAND..: rank RANK of $n, number LOCAL of the $each on that machine
as() {
  rank=$1; machine=$2; own=$3; shift 3
  mkdir -p "$dir/machine.$machine/tmp"
  if [ $launcher = torchrun ]; then
    set -- RANK=$rank WORLD_SIZE=$n LOCAL_RANK=$own LOCAL_WORLD_SIZE=$each MASTER_ADDR=localhost MASTER_PORT=$port "$@"
  else
    set -- SLURM_PROCID=$rank SLURM_NTASKS=$n SLURM_LOCALID=$own SLURM_STEP_NUM_NODES=2 "SLURM_STEP_NODELIST=localhost,node[2-3]" \
      SLURM_JOB_ID=7$((port - 15000)) "$@"
  fi
  $exec env AOT_CACHE_DIR="$dir/machine.$machine/cache" TMPDIR="$dir/machine.$machine/tmp" "$@"
}
# machines N SET..: N ranks of two machines, rank R's words in out.R; status.R
machines() {
  n=$1; each=$((n / 2)); shift
  for r in $(seq 0 $((n - 1))); do
    { as $r $((r / each)) $((r % each)) timeout 300 "$aothost" run train.yaml "$@" > "out.$r" 2>&1 && echo 0 > "status.$r" ||
        echo $? > "status.$r"; } &
  done
  wait
}
one_rank() { AOT_CACHE_DIR="$dir/cache" status 0 "$aothost" run train.yaml "$@"; losses out > one; }
all_well() {
  for r in $(seq 0 $((n - 1))); do [ "$(cat status.$r)" = 0 ] || complain "$1, rank $r of $n: $(tail -3 out.$r)"; done
  losses out.0 > some
  same one some
  [ "$(wc -l < some)" = 3 ] || complain "$1: $(wc -l < some) losses"
}

# Four ranks of two machines; a second run, at another port, has the program from each machine's own cache.
one_rank --set run.train.accumulate=4
for again in first second; do
  machines 4
  all_well "torchrun, the $again time"
  port=$((port + 1))
done
has out.0 'compiled before'
has out.0 'rank 3: parameters and state'
launcher=srun
export AOT_NCCL_DOUBLE=other-subnet=1
machines 4
all_well "srun, on machines that are of other networks than the address"
unset AOT_NCCL_DOUBLE
launcher=torchrun
# Rows of a mesh on a machine each, columns across them.
machines 4 --set vars.mode=hybrid --set stages.fsdp.columns=2
all_well "a mesh"
# Three machines with a rank each.
one_rank --set run.train.accumulate=3
machines 3
all_well "three machines"
one_rank --set run.train.accumulate=2
machines 2 --set run.ranks-with.rendezvous=:$((port + 7))
all_well "a port of its own"
machines 2 --set run.ranks-with.rendezvous=127.0.0.1:$((port + 7)) --set vars.mode=replicate
all_well "an address of its own"

# Who differs, and in what.
n=2; each=1
{ as 0 0 0 "$aothost" run train.yaml > out.0 2>&1 || echo $? > status.0; } &
as 1 1 0 "$aothost" run train.yaml --set run.train.lr=0.02 > out.1 2>&1 || echo $? > status.1
wait
[ "$(cat status.0 status.1)" = "$(printf '2\n2')" ] || complain "another pipeline: $(cat out.0 out.1)"
for r in 0 1; do has out.$r "the pipeline of rank 1 differs from that of rank 0 \(reported by rank $r\)"; done

# A checkpoint is a folder that all machines share: else no step is done. (/proc/self/cwd is another folder on each machine here.)
checkpoint() {
  for r in 0 1; do
    mkdir -p machine.$r/ckpt
    { (cd machine.$r && as $r $r 0 "$aothost" run ../train.yaml --set run.train.checkpoint="$1") > out.$r 2>&1 && echo 0 > status.$r ||
        echo $? > status.$r; } &
  done
  wait
}
checkpoint /proc/self/cwd/ckpt
for r in 0 1; do
  [ "$(cat status.$r)" = 2 ] || complain "a folder of each machine's: $(cat out.$r)"
  has out.$r 'rank 1 does not see what rank 0 writes to the checkpoint, the folder /proc/self/cwd/ckpt: ranks of several machines'
  grep -q 'step 1/' out.$r && complain "rank $r begins with it"
  [ "$(ls -A machine.$r/ckpt)" = "" ] || complain "a mark stays: $(ls -A machine.$r/ckpt)"
done
checkpoint "$dir/ckpt"
[ "$(cat status.0 status.1)" = "$(printf '0\n0')" ] || complain "a shared folder: $(cat out.0 out.1)"
[ "$(ls -A ckpt)" = "$(printf 'index.safetensors\nstep-3.1')" ] || complain "the folder has $(ls -A ckpt)"
n=2; each=1
machines 2 --set run.train.resume=ckpt --set run.train.steps=4
has out.0 'step 4/4  loss'

# A rank that is killed: the other has NCCL's collectives alone to know it by, and its patience.
exec=exec # so that these are the processes themselves
as 0 0 0 "$aothost" run train.yaml --set run.train.steps=100000 --set run.ranks-with.patience=12 > out.0 2>&1 & first=$!
as 1 1 0 "$aothost" run train.yaml --set run.train.steps=100000 --set run.ranks-with.patience=12 > out.1 2>&1 & second=$!
exec=
for _ in $(seq 600); do grep -q 'step 5/' out.0 && break; sleep 0.1; done
has out.0 'step 5/'
kill -KILL $second
{ sleep 60; kill -KILL $first; } > /dev/null 2>&1 & guard=$!
wait $first && complain "the first rank ended well without the second" || code=$?
[ "$code" = 2 ] || complain "the first rank ended with $code: $(cat out.0)"
kill $guard 2> /dev/null
cp out.0 out
says 'a collective has not ended within 12 s; rank 0 was at|nothing was heard of rank 1 within 12 s'

# Nobody comes, on either side.
status 2 as 0 0 0 "$aothost" run train.yaml --set run.ranks-with.patience=1
says "rank 0 of 2: not all ranks have come within 1 s to localhost:$((port + 1)), which is .* here \(and cannot be reached"
status 2 as 1 1 0 "$aothost" run train.yaml --set run.ranks-with.patience=1
says "rank 1 of 2: not all ranks have come within 1 s to localhost:$((port + 1)), which is .* here \(and cannot be reached"

# What is no place to meet is told within seconds, by each rank that finds it so. (A port that is taken: unit_meeting_address.)
RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=no-such-host.invalid MASTER_PORT=$port status 2 "$aothost" run train.yaml
says "rank 1 of 2: the ranks meet at no-such-host.invalid:$((port + 1)): the host cannot be found: "
RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=192.0.2.1 MASTER_PORT=$port status 2 "$aothost" run train.yaml
says 'this machine, on which rank 0 is, is not 192.0.2.1: rank 0 has to run where the address is'
RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=seven status 2 "$aothost" run train.yaml
says 'MASTER_PORT is seven, and no port of 1 to 65534'
RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=localhost status 2 "$aothost" run train.yaml
says 'MASTER_ADDR is localhost, and MASTER_PORT is not set'
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 status 2 "$aothost" run train.yaml
says '4 ranks of several machines, which meet at an address: nobody tells one; set MASTER_ADDR and MASTER_PORT'
RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 status 2 "$aothost" run train.yaml --set run.ranks-with.rendezvous=localhost
says 'the ranks meet at localhost: it is not HOST:PORT'
finish
