#!/bin/sh
# cuda_windows.sh AOTHOST - ROOT: memory that NCCL (its double) knows of on all ranks: two ranks have the losses of one process, gathers
# stand between windows, and each window is given back; none where none are wanted, or known.
. "$(dirname "$0")/lib.sh"
export AOT_CACHE_DIR="$dir/cache" AOT_CUDA_DOUBLE=granularity=4096
cat > train.yaml <<END
aot: 1
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: fsdp}, {use: autograd}, {use: partition-mincut}, {use: overlap}, {use: backend-cuda}]
run:
  ranks: comm-nccl
  ranks-with: {rendezvous: $dir/meeting, patience: 120, windows-from: 1KiB}
  device: cuda
  train: {steps: 5, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END
losses() { sed -n 's/.*\(step [0-9]*\/[0-9]*\)  loss \([0-9.]*\)  lr.*/\1 \2/p' "$1"; }
# ranks WHAT SET..: two processes, rank R's words in out.R, what it says of windows in windows.R
ranks() {
  what=$1; shift
  rm -f windows.? status.?
  for r in 0 1; do
    { WORLD_SIZE=2 RANK=$r AOT_NCCL_DOUBLE="windows=windows $double" timeout 300 "$aothost" run train.yaml "$@" > "out.$r" 2>&1 && echo 0 > "status.$r" || echo $? > "status.$r"; } &
  done
  wait
  [ "$(cat status.0 status.1)" = "$(printf '0\n0')" ] || complain "$what: $(cat out.0 out.1)"
  losses out.0 > two
  same one two
}
double=
status 0 "$aothost" run train.yaml --set run.train.accumulate=2
losses out > one
[ "$(wc -l < one)" = 5 ] || complain "one process printed $(wc -l < one) losses"

ranks windows
for r in 0 1; do
  awk '{ exit !($2 > 0 && $2 == $4 && $6 > 0) }' windows.$r || complain "windows of rank $r: $(cat windows.$r)"
done
same windows.0 windows.1
ranks 'a mode with sums' --set stages.fsdp.mode=replicate
awk '{ exit !($2 > 0 && $2 == $4) }' windows.0 || complain "windows of sums: $(cat windows.0)"

# No windows: as it is wanted; by an older NCCL; of memory that is not large; where one cannot be made.
for what in 'run.ranks-with.windows=false' 'run.ranks-with.windows-from=1GiB'; do
  ranks "$what" --set "$what"
  has windows.0 '^windows 0 given-back 0 between 0$'
done
double=version=22700
ranks 'an older NCCL'
has windows.0 '^windows 0 given-back 0 between 0$'
double=
export AOT_CUDA_DOUBLE=granularity=1073741824
ranks 'small buffers'
has windows.0 '^windows 0 given-back 0 between 0$'
export AOT_CUDA_DOUBLE=granularity=4096
double=no-window-at=1
ranks 'a window that cannot be made'
awk '{ exit !($6 == 0) }' windows.0 || complain "after a window that could not be made: $(cat windows.0)"
finish
