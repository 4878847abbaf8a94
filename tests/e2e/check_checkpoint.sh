#!/bin/sh
# Activation checkpoints: the tags of an archive change what is saved, and not one bit of a gradient. The same program without
# its tags is the other side of the comparison.
. "$(dirname "$0")/lib.sh"
archive=$root/tests/models/checkpointed/train.pt2
status 0 "$aothost" opt "$archive" -o tagged.ir
has tagged.ir 'prefer_recompute} region 1'
has tagged.ir 'prefer_recompute} region 2'
has tagged.ir 'must_recompute} region 4'
has tagged.ir 'must_save} region 4'
sed -E 's/ \{[a-z_]+\} region [0-9]+//' tagged.ir > plain.ir
grep -q '} region ' plain.ir && complain "tags are left"

# saved_bytes PROGRAM PARTITION
saved_bytes() {
  "$aothost" opt $1.ir --use functionalize --use autograd --use $2 -o /dev/null --json - |
    sed -n '/"saved-bytes"/{n;s/[^0-9]*\([0-9]*\).*/\1/p;}'
}
for partition in partition-default partition-mincut; do
  tagged=$(saved_bytes tagged $partition) plain=$(saved_bytes plain $partition)
  echo "$partition: $tagged saved bytes with tags, $plain without"
  [ "$tagged" -lt "$plain" ] || complain "$partition saves $tagged bytes with tags, $plain without"
  for backend in backend-ref backend-cpu; do
    for program in tagged plain; do
      cat > p.yaml <<P
aot: 1
stages: [{use: functionalize}, {use: autograd}, {use: $partition}, {use: $backend}]
run: {inputs: random}
P
      status 0 "$aothost" run p.yaml --model $program.ir --grads --outputs $program.safetensors
    done
    [ $backend = backend-cpu ] || same tagged.safetensors plain.safetensors # backend-cpu fuses other groups
  done
done
finish
