#!/bin/sh
# rank_checkpoints.sh AOTHOST LOCAL_RANKS ROOT: checkpoints of several ranks. Any number of ranks goes on with them as with the same
# checkpoint in one file, bit for bit; the same number as if it had not stopped. What is damaged, or of another model, is refused.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/ranks_lib.sh"
cat > train.yaml <<END
aot: 1
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: rng}, {use: fsdp, with: {buffers: local}}, {use: autograd}, {use: partition-default}, {use: backend-ref}]
run:
  train: {steps: 4, optimizer: adamw, lr: 0.01, seed: 4, log-every: 1}
END
to() { echo "--set run.train.steps=$1"; }

# Not stopping, and stopping in the middle: masks of dropout and batches go on, too. A second checkpoint takes the place of the first.
for model in tests/models/dropout_gpt tests/fixtures/models/resnet_tiny; do
  m="--set model.path=$root/$model/train.pt2"
  together 3 $m; sort all > straight
  rm -rf ckpt
  together 3 $m $(to 2) --set run.train.checkpoint.path=ckpt --set run.train.checkpoint.every=1; sort all > parts
  [ "$(ls ckpt | tr '\n' ' ')" = "index.safetensors step-2.1 " ] || complain "the folder has $(ls ckpt)"
  together 3 $m --set run.train.resume=ckpt; sort all >> parts
  same straight parts
done

# Other numbers of ranks. Rows of gpt_tiny's parameters are filled up with 3 and 4 ranks.
rm -rf ckpt
together 4 $(to 2) --set run.train.checkpoint=ckpt
status 0 "$aothost" export ckpt --full -o whole.st
says 'whole.st: the checkpoint of 4 ranks as one file'
for n in 2 3 4; do
  together $n --set run.train.resume=ckpt; mv all from_parts
  together $n --set run.train.resume=whole.st; mv all from_whole
  [ -s from_parts ] && same from_parts from_whole
done
alone 1 --set run.train.resume=ckpt; mv one from_parts
alone 1 --set run.train.resume=whole.st; mv one from_whole
[ "$(wc -l < from_parts)" = 2 ] || complain "one rank has not gone on"
same from_parts from_whole
# A checkpoint of one rank, and of one that has shared nothing out, are those of ranks.
together 4 $(to 2) --set run.train.checkpoint=replicas --set stages.fsdp.mode=replicate
status 0 "$aothost" export replicas --full -o copies.st
same whole.st copies.st
status 0 "$aothost" export whole.st --full -o again.st
same whole.st again.st

# Statistics of each rank's own rows: no other number of ranks goes on with them; the first one's are exported.
resnet="--set model.path=$models/resnet_tiny/train.pt2"
together 2 $resnet $(to 2) --set run.train.checkpoint=stats
status 2 "$local_ranks" 3 train.yaml $resnet --set run.train.resume=stats
says 'each of 2 ranks has a "buffer[^"]*" of its own, which 3 ranks cannot go on with'
status 0 "$aothost" export stats --full -o stats.st
alone 1 $resnet --set run.train.resume=stats.st

# Another model; a rank's file that is gone, cut off, another rank's, or of other rows; an index that is not one.
status 2 "$local_ranks" 2 train.yaml $resnet --set run.train.resume=ckpt
says 'the checkpoint lacks'
folder=$(echo ckpt/step-*)
for damage in 'rm $folder/rank-2.safetensors' 'truncate -s 100 $folder/rank-1.safetensors' 'cp stats/step-*/rank-1.safetensors $folder/rank-3.safetensors' \
  'cp whole.st ckpt/index.safetensors'; do
  rm -rf good; cp -r ckpt good
  eval "$damage"
  status 2 "$local_ranks" 2 train.yaml --set run.train.resume=ckpt
  says 'error'
  rm -rf ckpt; mv good ckpt
done
together 2 --set run.train.resume=ckpt

# A rank that dies anywhere in the saving of step 3 leaves the checkpoint of step 2 whole, with which others go on.
together 2 --set run.train.resume=ckpt; mv all wanted
for fault in 0:72 2:73 1:73 0:74 2:74; do
  status 2 timeout 60 "$local_ranks" 4 train.yaml --set run.train.resume=ckpt $(to 3) --set run.train.checkpoint=ckpt \
    --on "${fault%:*}:run.ranks-with.die-at=${fault#*:}"
  says 'a checkpoint: all_gather .* rank [0-2] will not come'
  together 2 --set run.train.resume=ckpt
  same wanted all
done
# A rank's file that there is no room for (here: larger than a process may write): the others hear who could not, and why not is told once.
cp -r ckpt before
status 2 sh -c 'trap "" XFSZ; ulimit -f 40; exec "$@"' - "$local_ranks" 4 train.yaml --set run.train.resume=ckpt $(to 3) --set run.train.checkpoint=ckpt
says 'cannot write ckpt/step-3.*/rank-[0-3].safetensors: File too large'
says 'rank [0-3] could not write its part of the checkpoint ckpt; the one before stays'
grep -q 'no memory' out && complain "a full disk is told as memory that is: $(grep 'no memory' out)"
diff -r before ckpt > /dev/null || complain "the checkpoint of step 2 was changed: $(ls -R ckpt)"
# What they have left goes with the next one that is whole.
together 4 --set run.train.resume=ckpt $(to 3) --set run.train.checkpoint=ckpt
[ "$(ls ckpt | wc -l)" = 2 ] || complain "the folder has $(ls ckpt)"
echo > other; status 2 "$local_ranks" 2 train.yaml --set run.train.checkpoint=other
says 'a folder of several ranks, cannot be written to .*other: Not a directory'
finish
