#!/bin/sh
# cuda_overlap.sh AOTHOST - ROOT: collectives that go on beside kernels, on the doubles of CUDA and NCCL: 20 steps of two ranks have the losses
# of one process with all rows, in every mode; the double's trace tells what stood in no order with what; a wait that is forgotten is found.
. "$(dirname "$0")/lib.sh"
export AOT_CACHE_DIR="$dir/cache"
cat > train.yaml <<END
aot: 1
vars: {mode: shard}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: rng}, {use: fsdp, with: {mode: "\${mode}", columns: 2}}, {use: autograd}, {use: partition-mincut},
  {use: overlap, with: {bucket: 16KiB, ahead: 32KiB}}, {use: backend-cuda}]
run:
  ranks: comm-nccl
  ranks-with: {rendezvous: $dir/meeting, patience: 120}
  device: cuda
  train: {steps: 20, optimizer: adamw, lr: 0.001, seed: 4, log-every: 1}
END
# ranks N SET..: N processes, rank R's words in out.R, its losses in json.R; status.R. first_rank: what else the first one's environment has
ranks() {
  n=$1; shift
  rm -f json.* status.*
  for r in $(seq 0 $((n - 1))); do
    { [ "$r" != 0 ] || export AOT_CUDA_DOUBLE="$first_rank"
      WORLD_SIZE=$n RANK=$r timeout 300 "$aothost" run train.yaml --json json.$r "$@" > "out.$r" 2>&1 && echo 0 > "status.$r" || echo $? > "status.$r"; } &
  done
  wait
}
first_rank=
losses() { jq -r '.train.log[] | "\(.step) \(.loss)"' "$1"; }
# equal STEPS WHAT: the first rank's losses are those of the one process, to 1e-6
equal() {
  [ "$(cat status.* | sort -u)" = 0 ] || { complain "$2: $(cat out.0 out.1)"; return; }
  losses json.0 > two
  awk -v n="$1" 'FNR == NR { one[$1] = $2; next } { rows++; d = $2 - one[$1]; if (d < 0) d = -d; if (!($1 in one) || d > 1e-6 * one[$1]) { print; bad = 1 } }
    END { exit bad || rows != n }' one two > differ || complain "$2: losses differ: $(cat differ)"
}

# What stands in no order with a collective: rows of the trace are what ran, its stream, its count there, its number, the last number that is
# behind it for sure, and what of each stream is behind it. One line: collectives, those with kernels beside them, such pairs.
beside() {
  awk '{ name[NR] = $1; stream[NR] = $2; at[NR] = $3; number[NR] = $4; known[NR] = $5; for (k = 6; k <= NF; k++) of[NR, k - 6] = $k }
    function is_behind(a, b) { return at[a] <= of[b, stream[a]] || number[a] <= known[b] }
    END { for (c = 1; c <= NR; c++) {
        if (name[c] !~ /nccl/) continue
        n++; here = 0
        for (k = 1; k <= NR; k++) here += name[k] !~ /nccl/ && !is_behind(k, c) && !is_behind(c, k)
        pairs += here; with += here > 0
      }
      print n + 0, with + 0, pairs + 0 }' "$1"
}

status 0 "$aothost" run train.yaml --set run.train.accumulate=2 --json one.json
losses one.json > one
for mode in shard shard-grad replicate hybrid; do
  ranks 2 --set vars.mode=$mode
  equal 20 "$mode"
  grep -q 'on the host, with copies there and back' out.0 && complain "$mode: collectives run on the host"
  [ "$(jq '[.stages[].numbers["started-collectives"].value // 0] | add > 0' json.0)" = true ] || complain "$mode: no collective is started"
done
# Collectives write nothing that they read: attention keeps for its gradients what it keeps in one process.
calls() { jq '[.stages[].numbers["cudnn-calls"].value // 0] | max' "$1"; }
half='--set run.train.precision=bf16 --set run.train.steps=1'
# shellcheck disable=SC2086
status 0 "$aothost" run train.yaml --set run.train.accumulate=2 $half --json one.json
# shellcheck disable=SC2086
ranks 2 $half
[ "$(calls one.json)" -gt 0 ] && [ "$(calls one.json)" = "$(calls json.0)" ] || complain "$(calls json.0) calls of cuDNN in a rank, $(calls one.json) in one process"
losses one.json > one
# shellcheck disable=SC2086
ranks 2 $half --set stages.overlap.exchange=1
equal 1 'gradients that are exchanged'
[ "$(jq '[.stages[].numbers["exchanged-sums"].value // 0] | add > 0' json.0)" = true ] || complain 'no gradient is exchanged'
# A mesh: gathers and scatters of rows and sums of columns, all on one queue beside the kernels.
status 0 "$aothost" run train.yaml --set run.train.accumulate=4 --set run.train.steps=3 --json one.json
losses one.json > one
first_rank="trace=$dir/trace"
ranks 4 --set vars.mode=hybrid --set run.train.steps=3
first_rank=
equal 3 "2 x 2 ranks"
beside trace > counts
read -r n with pairs < counts
[ "$n" -gt 60 ] && [ $((2 * with)) -ge "$n" ] || complain "2 x 2 ranks: of $n collectives $with have kernels beside them, $pairs pairs"
model="--set model.path=$root/tests/models/dropout_gpt/train.pt2"
# shellcheck disable=SC2086
status 0 "$aothost" run train.yaml --set run.train.accumulate=2 --json one.json $model
losses one.json > one
# shellcheck disable=SC2086
ranks 2 $model
equal 20 dropout

first_rank="trace=$dir/trace"
ranks 2 --set run.train.steps=2
beside trace > counts
read -r n with pairs < counts
[ "$n" -gt 20 ] && [ $((2 * with)) -ge "$n" ] && [ "$pairs" -ge $((5 * n)) ] || complain "of $n collectives $with have kernels beside them, $pairs pairs"

# A wait that is forgotten: memory that a collective is at is written, or read before it is there. One that another wait covers is not missed.
found=0
for wait in 3 5 8 12 16 20 25 30 35 40; do
  [ $found -lt 3 ] || break
  first_rank=drop-wait=$wait
  ranks 2 --set run.train.steps=1 --set run.ranks-with.patience=10
  grep -q 'a collective on stream .*, and nothing orders the two\|that a collective on stream .*, and nothing orders the two' out.0 && found=$((found + 1))
done
[ $found -ge 3 ] || complain "of 10 waits that are forgotten $found are found"
first_rank="trace=$dir/trace"

sed -i 's/{use: overlap[^}]*}}, //' train.yaml
ranks 2 --set run.train.steps=2
beside trace > counts
read -r n with pairs < counts
[ "$n" -gt 20 ] && [ "$pairs" = 0 ] || complain "without the stage overlap: of $n collectives $with have kernels beside them"
finish
