#!/bin/sh
# A product of halves that is added to a float tensor is made onto it, on backend-cuda's double: backend-ref's results, but
# for what rounding the product to halves does; and nothing of the kind where somebody sees the product, or nobody wants
# the sum in memory.
. "$(dirname "$0")/lib.sh"
# DTYPE WIDE COLUMNS LINES: of the graph, from the product on; there are x [64, WIDE], w [COLUMNS, WIDE] and v [COLUMNS] of
# the dtype, of which v is a cast, and b, which is none; and r [64, COLUMNS] of float32, which a product makes
program() {
  { printf 'aot 1\nproperties imported\n'; leaf 0 x "[64, $2]" $((64 * $2)); leaf 1 w "[$3, $2]" $(($3 * $2)); leaf 2 v "[$3]" "$3"; } > sum.ir
  awk -v dtype="$1" -v wide="$2" -v columns="$3" -v lines="$4" 'BEGIN {
  print "graph @main forward {\n  in %px = parameter 0 : f32[64, " wide "]\n  in %pw = parameter 1 : f32[" columns ", " wide "]"
  print "  in %pv = parameter 2 : f32[" columns "]"
  for (i = 1; i <= 3; i++) print "  %" substr("xwv", i, 1) " = aten._to_copy.default %p" substr("xwv", i, 1) ", dtype=" dtype
  print "  %b = aten.sin.default %v"
  print "  %r = aten.linear.default %px, %pw, none"
  print lines "}"
}' >> sum.ir
}
number() { grep -A1 "\"$1\"" run.json | sed -n 's/.*"value": \([-0-9.e+]*\).*/\1/p' | awk '{ printf "%d", $1 }'; }
# KIND: of the program above, with products that add or loops that do
run() {
  kind=$1; shift
  status 0 "$aothost" verify --no-cache "$root/pipelines/inference.yaml" --model sum.ir --expect expected.st --json run.json --rtol "$tolerance" \
    --atol "$tolerance" --set vars.backend=backend-cuda --set run.device=cuda --set stages.backend-cuda.algorithms=first \
    --set stages.backend-cuda.residual="$kind" "$@"
  found=$(number residual-products) moved=$(number loop-bytes) arena=$(number arena-bytes) steps=$(number kernels)
}
# HOW-MANY WHAT: residual products of the program above. Fewer bytes for loops, and no more memory, where there are some
check() {
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model sum.ir --outputs expected.st --set vars.backend=backend-ref
  run loop
  [ "$found" = 0 ] || complain "$2: $found that nobody wants"
  by_loop=$moved arena_by_loop=$arena
  run product
  [ "$found" = "$1" ] || complain "$2: $found products onto a tensor instead of $1"
  [ "$1" = 0 ] || { [ "$moved" -lt "$by_loop" ] && [ "$arena" -le "$arena_by_loop" ]; } ||
    complain "$2: loops move $moved bytes in $arena, and $by_loop in $arena_by_loop"
  [ "$1" != 0 ] || [ "$moved" = "$by_loop" ] || complain "$2: loops move $moved bytes instead of $by_loop"
}
norm='  %n = aten.layer_norm.default %y, [24], none, none, 1e-05, false
'
both="$norm"'  out user_output 0 = %y
  out user_output 1 = %n
'
product='  %t = aten.linear.default %x, %w, %v
'
add='  %y = aten.add.Tensor %r, %t
'
tolerance=1e-2
for dtype in bf16 f16; do
  program $dtype 40 24 "$product$add$both"
  check 1 "$dtype"
done
program bf16 40 24 "  %t = aten.linear.default %x, %w, none
$add$both"
check 1 "no bias"
program bf16 40 24 "  %t = aten.linear.default %x, %w, %b
$add$both"
check 1 "a bias that is no cast"
program bf16 40 24 "  %a = aten.t.default %w
  %t = aten.addmm.default %v, %x, %a
  %wide = aten._to_copy.default %t, dtype=f32
  %y = aten.add.Tensor %wide, %r
$both"
check 1 "a cast of it, the other way round"
program bf16 40 24 "$product  %deep = aten.view.default %t, [4, 16, 24]
  %s = aten.view.default %r, [4, 16, 24]
  %y = aten.add.Tensor %s, %deep
$both"
check 1 "a view of it"
program bf16 40 24 "$product  %u = aten.t.default %t
  %c = aten.t.default %r
  %y = aten.add.Tensor %u, %c
  out user_output 0 = %y
"
check 1 "columns of both"
program bf16 40 24 "  %a = aten.view.default %x, [4, 16, 40]
  %c = aten.view.default %w, [1, 24, 40]
  %d = aten.transpose.int %c, 1, 2
  %e = aten.expand.default %d, [4, 40, 24]
  %t = aten.bmm.default %a, %e
  %deep = aten.view.default %r, [4, 16, 24]
  %y = aten.add.Tensor %deep, %t
  out user_output 0 = %y
"
check 1 "a batch"
program bf16 40 24 "$product$add  %h = aten._to_copy.default %y, dtype=bf16
  %sq = aten.slice.Tensor %w, 1, 0, 24
  %t2 = aten.linear.default %h, %sq, %v
  %z = aten.add.Tensor %y, %t2
  out user_output 0 = %y
  out user_output 1 = %z
"
check 2 "two"
# the sum lies where the tensor did that it was added to
program bf16 40 24 "$product$add  %sq = aten.slice.Tensor %pw, 1, 0, 24
  %q = aten.linear.default %y, %sq, none
  out user_output 0 = %q
"
check 1 "one after another"
[ "$arena" -lt "$arena_by_loop" ] || complain "$arena bytes, and $arena_by_loop with the product beside its sum"
# it is rounded once: as float it would be the same
program bf16 40 24 "  %fx = aten._to_copy.default %x, dtype=f32
  %fw = aten._to_copy.default %w, dtype=f32
  %t = aten.linear.default %fx, %fw, %pv
$add  out user_output 0 = %y
"
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model sum.ir --outputs expected.st --set vars.backend=backend-ref
program bf16 40 24 "$product$add  out user_output 0 = %y
"
tolerance=1e-6
run product
tolerance=1e-2
# parts: 520 columns and 3; a library that has no float bias
program bf16 1200 523 "$product$add  out user_output 0 = %y
"
check 1 "rows that are cut"
program bf16 40 24 "$product$add$both"
check 1 "a bias in float"
before=$steps
export AOT_CUDA_DOUBLE="$AOT_CUDA_DOUBLE no-bias=1"
run product
AOT_CUDA_DOUBLE=${AOT_CUDA_DOUBLE% no-bias=1}
[ "$found" = 1 ] && [ "$steps" -gt "$before" ] || complain "without a bias in float $found, in $steps steps instead of $before"

program bf16 40 24 "$product$add$both  out user_output 2 = %t
"
check 0 "a product that is returned"
program bf16 40 24 "$product$add  %m = aten.mul.Tensor %t, %t
$both  out user_output 2 = %m
"
check 0 "one that is read twice"
program bf16 40 24 "$product  %y = aten.add.Tensor %r, %t, alpha=2
$both"
check 0 "a factor"
program bf16 40 24 "$product  %row = aten.slice.Tensor %r, 0, 0, 1
  %y = aten.add.Tensor %row, %t
$both"
check 0 "a row for all"
program bf16 40 24 "$product  %h = aten._to_copy.default %r, dtype=bf16
  %y = aten.add.Tensor %h, %t
$both"
check 0 "a sum of halves"
program bf16 40 24 "$product  %d = aten._to_copy.default %r, dtype=f64
  %y = aten.add.Tensor %d, %t
$both"
check 0 "a sum of doubles"
program bf16 40 24 "$product  %u = aten.t.default %t
  %c = aten.view.default %r, [24, 64]
  %y = aten.add.Tensor %c, %u
  out user_output 0 = %y
"
check 0 "columns of it"
program f32 40 24 "$product$add$both"
check 0 "float"
program bf16 40 24 "$product$add$norm  out user_output 0 = %n
"
check 0 "a sum that stays in registers"
program bf16 40 24 "$product  %c = aten.sin.default %px
  %s = aten.slice.Tensor %c, 1, 0, 24
  %d = aten.cos.default %s
  %y = aten.add.Tensor %d, %t
$both"
check 0 "a tensor that stays there"

# steps of a model under autocast: losses are those of loops that add, but for the rounding
cat > train.yaml <<'END'
aot: 1
stages:
  - use: functionalize
  - use: autograd
  - use: partition-mincut
  - use: backend-cuda
    with: {algorithms: first}
run:
  device: cuda
  train: {steps: 3, lr: 1e-2, optimizer: sgd, log-every: 1, precision: bf16, loss-scale: none, data: random}
END
for kind in loop product; do
  status 0 "$aothost" run train.yaml --model "$models/gpt_tiny/train.pt2" --no-cache --json run.json --set stages.backend-cuda.residual=$kind
  sed -n 's/^step .*loss \([0-9.]*\) .*/\1/p' out > $kind
done
[ "$(number residual-products)" = 3 ] || complain "$(number residual-products) products of gpt_tiny are added"
paste loop product | awk '{ d = $1 - $2; n += d < 2e-3 && d > -2e-3 } END { exit n != 3 }' || complain "losses: $(paste loop product)"
finish
