#!/bin/sh
# rank_graphs.sh AOTHOST - ROOT: what must be true of graphs behind fsdp (rank_graphs.awk), of models in every mode, in halves and as one
# step whose collectives are arranged; and programs in which it is not true are found.
. "$(dirname "$0")/lib.sh"
rules=$root/tests/e2e/rank_graphs.awk
# program MODEL MODE RANKS STAGES..: to program.ir
program() {
  model=$1 mode=$2 n=$3; shift 3
  columns=0; parts=$n; [ "$mode" = hybrid ] && columns=2 parts=2
  "$aothost" opt "$root/$model/train.pt2" --use functionalize --use rng --use fsdp --with ranks="$n" --with rank=1 --with mode="$mode" \
    --with columns=$columns --with replicate-under=0 --with buffers=local --use autograd --use partition-mincut "$@" -o program.ir -q > out 2>&1 ||
    { complain "$model, $mode, $n ranks: $*"; cat out; }
}
holds() { awk -v mode="$1" -v parts="$2" -v shards="$3" -f "$rules" whole.ir program.ir > broken || complain "$4: $(head -5 broken)"; }
breaks() { # WHAT, an expression of sed, the words that are told
  sed -E "$2" program.ir > wrong.ir
  cmp -s program.ir wrong.ir && complain "$1: the program is as it was"
  awk -v mode=shard -v parts=3 -v shards=1 -f "$rules" whole.ir wrong.ir > broken && complain "$1 is not found"
  grep -q "$3" broken || complain "$1: $(cat broken)"
}

for model in mlp gpt_tiny resnet_tiny vit_tiny; do
  folder=tests/fixtures/models/$model
  status 0 "$aothost" opt "$root/$folder/train.pt2" -o whole.ir -q
  for mode in shard shard-grad replicate hybrid; do
    shards=1; [ $mode = replicate ] && shards=0
    n=3; [ $mode = hybrid ] && n=4
    program $folder $mode $n --use adamw
    holds $mode "$parts" $shards "$model, $mode, halves"
    program $folder $mode $n --use adamw --use stitch --use overlap --with ranks=$n --with keep=false
    holds $mode "$parts" $shards "$model, $mode, one step"
  done
done

# The rules can fail.
status 0 "$aothost" opt "$root/tests/fixtures/models/mlp/train.pt2" -o whole.ir -q
program tests/fixtures/models/mlp shard 3 --use adamw
holds shard 3 1 "mlp"
gathered=$(sed -nE '/^graph .* forward/,/^}/s/^  (%[A-Za-z0-9_]+) .*= _c10d_functional.wait_tensor.default.*/\1/p' program.ir | head -1)
[ -n "$gathered" ] || complain "nothing is gathered by the forward"
breaks "a whole parameter as an output" "/^graph .* forward/,/^}/s/^(  out user_output 0 .*= ).*/\\1$gathered/" 'a whole parameter leaves as user_output'
breaks "a whole parameter as an input" '/^graph/,$s/(in .* = parameter 0 : f32\[)[0-9]+/\199/' 'is not as large as the leaf'
breaks "a leaf that is not cut" 's/^(leaf 0 parameter .* : f32\[)[0-9]+/\199/' 'has 99 rows of'
breaks "two inputs of one leaf" '/^graph .* forward/,/^}/s/parameter 1 :/parameter 0 :/' 'leaf 0 is two inputs'
breaks "two writers of one leaf" 's/^(  out update )1 /\10 /' 'leaf 0 is written twice'
program tests/fixtures/models/mlp shard 3 --use adamw --use stitch
holds shard 3 1 "mlp, one step"
gathered=$(sed -nE 's/^  (%[A-Za-z0-9_]+) .*= _c10d_functional.wait_tensor.default.*\{must_recompute.*/\1/p' program.ir | head -1)
own=$(sed -nE 's/^  (%[A-Za-z0-9_]+) .*= _c10d_functional.wait_tensor.default.*\{backward must_recompute.*/\1/p' program.ir | head -1)
[ -n "$gathered" ] && [ -n "$own" ] || complain "the step gathers $gathered in the forward, $own in the backward"
breaks "a gather for forward and backward" "s/= (aten[^ ]* .*)$own([ ,].*backward)/= \\1$gathered\\2/; s/= (aten[^ ]* )$own([ ,].*backward)/= \\1$gathered\\2/" \
  'the backward reads what the forward gathered'
finish
