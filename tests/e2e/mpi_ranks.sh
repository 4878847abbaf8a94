#!/bin/sh
# mpi_ranks.sh AOTHOST - ROOT MPIRUN: pipelines/fsdp.yaml as processes of an MPI job has the losses of one process; one that is killed ends
# the others.
. "$(dirname "$0")/lib.sh"
mpirun=$4
set_up_mpi
pipeline=$root/pipelines/fsdp.yaml
losses() { sed -n 's/.*\(step [0-9]*\/[0-9]*\)  loss \([0-9.]*\)  lr.*/\1 \2/p' "$1"; }

status 0 "$aothost" run "$pipeline" --no-cache --set run.train.steps=6 --set run.train.log-every=1 --set run.train.accumulate=2
says '^memory: '
losses out > one
[ "$(wc -l < one)" = 6 ] || complain "one process printed $(wc -l < one) losses"
status 0 timeout 300 "$mpirun" -n 2 "$aothost" run "$pipeline" --set run.train.steps=6 --set run.train.log-every=1 --json two.json
losses out > two
same one two
says 'rank 0: parameters and state .* gathered .* scattered .* in collectives \([0-9.]+ hidden, [0-9.]+ exposed\), process peak [0-9.]+ MiB'
says '^rank 1: parameters and state '
[ "$(jq -c '[.ranks[] | .leaf_bytes > 0 and .peak_rss_bytes > .arena_bytes and .gathered_bytes > 0 and .collectives_s > 0 and .exposed_s > 0]' two.json)" = \
  '[true,true]' ] || complain "of each rank: $(jq -c .ranks two.json)"
status 0 timeout 300 "$mpirun" -n 2 "$aothost" run "$pipeline" --set run.train.steps=6 --set run.train.log-every=1 \
  --set stages.fsdp.mode=replicate
losses out > two
same one two

# Programs that differ.
status 2 timeout 120 "$mpirun" -n 1 "$aothost" run "$pipeline" --set run.train.steps=6 : -n 1 "$aothost" run "$pipeline" --set run.train.steps=7
says 'the pipeline of rank 1 differs from that of rank 0'
says '^ *rank 0: steps: 6'
says '^ *rank 1: steps: 7'
grep -q 'contract violation' out && complain 'a plugin was blamed'

# Machines have files of their own under one name: models, texts and checkpoints that differ are told before the first step; of a file
# that only one of them has the others hear at once. (/proc/self/cwd is another folder for each rank here.)
mkdir -p here there
apart() { # SET..: rank 0 in the one folder, rank 1 in the other
  begin=$(date +%s)
  status 2 timeout 120 "$mpirun" -n 1 -wdir "$dir/here" "$aothost" run "$pipeline" --set run.train.steps=2 "$@" : \
    -n 1 -wdir "$dir/there" "$aothost" run "$pipeline" --set run.train.steps=2 "$@"
  [ $(($(date +%s) - begin)) -lt 20 ] || complain "$*: told after $(($(date +%s) - begin)) s"
  grep -q 'step 1/' out && complain "$*: the run has begun"
}
head -c 20000 "$root/examples/data/opticks.txt" > here/text
tail -c 20000 "$root/examples/data/opticks.txt" > there/text
apart --set run.train.data.tokens=/proc/self/cwd/text
says 'the data of rank 1 differs from that of rank 0'
says '^ *rank 1: /proc/self/cwd/text: 20000 bytes, hash '
rm there/text
apart --set run.train.data.tokens=/proc/self/cwd/text
says 'rank 1 has given up: cannot open /proc/self/cwd/text'
cp "$models/mlp/train.pt2" here/m.pt2
cp "$models/gpt_tiny/train.pt2" there/m.pt2
apart --set model.path=/proc/self/cwd/m.pt2
says 'the model of rank 1 differs from that of rank 0'
rm here/m.pt2
apart --set model.path=/proc/self/cwd/m.pt2
says 'rank 0 has given up: cannot open /proc/self/cwd/m.pt2'
for folder in here there; do
  status 0 "$aothost" run "$pipeline" -q --set run.train.steps=1 --set run.train.checkpoint=$folder/one.st --set run.train.lr=0.00$((${#folder} - 3))
done
apart --set run.train.resume=/proc/self/cwd/one.st
says 'the resumed checkpoint of rank 1 differs from that of rank 0'

# On machines that share no folder nothing is begun that could not be saved. (/proc/self/cwd is another folder for each rank here.)
save="--set run.train.steps=2 --set run.train.log-every=1 --set run.train.checkpoint=/proc/self/cwd/ckpt"
status 2 timeout 120 "$mpirun" -n 1 -wdir "$dir/here" "$aothost" run "$pipeline" $save : -n 1 -wdir "$dir/there" "$aothost" run "$pipeline" $save
says 'rank 1 does not see what rank 0 writes to the checkpoint, the folder /proc/self/cwd/ckpt'
grep -q 'step 1/' out && complain 'the run has begun'

# A process that is killed, and one that is stopped.
"$mpirun" -n 2 "$aothost" run "$pipeline" --set run.train.steps=100000 --set run.ranks-with.patience=3 \
  --set run.train.checkpoint.path=killed --set run.train.checkpoint.every=1 > out 2>&1 &
job=$!
for _ in $(seq 300); do [ -e killed/index.safetensors ] && break; sleep 0.1; done
victim=$(pgrep -P "$job" -f 'aothost run' | tail -1)
kill -KILL "$victim"
( sleep 60; kill -KILL "$job" ) > /dev/null 2>&1 & # which holds nothing open that a reader of this test waits for
guard=$!
wait "$job" && complain "the job ended well after one of its processes was killed"
kill "$guard" 2> /dev/null || complain "the job went on for a minute after one of its processes was killed"
says 'rank [01] .*(killed|signal 9)|process rank [01]'
# Its last checkpoint is whole: one process goes on with it.
status 0 "$aothost" export killed --full -o whole.st
done_steps=$(grep -ao '"step":"[0-9]*"' whole.st | tr -dc 0-9)
status 0 "$aothost" run "$pipeline" --no-cache --set run.train.resume=killed --set run.train.steps=$((done_steps + 1))
says "trained after step $((done_steps + 1)) "

# Each rank finds what it has compiled, with the random numbers that are its own; one that does not compiles anew.
export AOT_CACHE_DIR="$dir/cache"
cat > dropout.yaml <<END
aot: 1
model: {path: $root/tests/models/dropout_vit/train.pt2}
stages: [{use: functionalize}, {use: rng}, {use: fsdp}, {use: autograd}, {use: partition-mincut}, {use: backend-ref}]
run:
  ranks: comm-mpi
  train: {steps: 3, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END
for outcome in miss hit either; do
  status 0 timeout 120 "$mpirun" -n 2 "$aothost" run dropout.yaml -v --json found.json
  [ $outcome = either ] || says "cache: $outcome"
  jq -r '.train.log[] | "\(.step) \(.loss)"' found.json > two # what two ranks print with -v, mpirun may cut within lines
  [ -e one_found ] || cp two one_found
  same one_found two
  [ "$(ls cache/compiled/*.aotc | wc -l)" = 2 ] || complain "$(ls cache/compiled) are the entries of two ranks"
  [ $outcome = miss ] || rm "$(ls cache/compiled/*.aotc | head -1)"
done
finish
