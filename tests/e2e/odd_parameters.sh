#!/bin/sh
# odd_parameters.sh AOTHOST LOCAL_RANKS ROOT: parameters that are shared out otherwise than by whole rows: fewer rows than ranks, none at
# all, several dtypes, halves, numbers that are not trained (real, complex, whole), one that nobody reads, one read twice. Losses are those
# of one rank, and a checkpoint goes on with other numbers of ranks.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/ranks_lib.sh"
cat > odd.ir <<'END_OF_PROGRAM'
aot 1
properties imported

leaf 0 user_input 0 "x" : f32[4, 8]
leaf 1 parameter "one_row" : f32[1, 8] grad
leaf 2 parameter "two_rows" : f32[2, 8] grad
leaf 3 parameter "empty" : f32[0, 4] grad
leaf 4 parameter "number" : f32[] grad
leaf 5 parameter "wide" : f64[5, 3] grad
leaf 6 parameter "half" : f16[16, 8] grad
leaf 7 parameter "bf16" : bf16[7, 8] grad
leaf 8 parameter "frozen" : f32[6, 8]
leaf 9 parameter "complex" : c64[8, 8]
leaf 10 parameter "places" : i64[300]
leaf 11 parameter "unread" : f32[9, 2] grad

graph @forward forward {
  in %x = user_input 0 : f32[4, 8]
  in %one = parameter 1 : f32[1, 8] grad
  in %two = parameter 2 : f32[2, 8] grad
  in %empty = parameter 3 : f32[0, 4] grad
  in %number = parameter 4 : f32[] grad
  in %wide = parameter 5 : f64[5, 3] grad
  in %half = parameter 6 : f16[16, 8] grad
  in %bf16 = parameter 7 : bf16[7, 8] grad
  in %frozen = parameter 8 : f32[6, 8]
  in %complex = parameter 9 : c64[8, 8]
  in %places = parameter 10 : i64[300]
  in %unread = parameter 11 : f32[9, 2] grad
  %a = aten.add.Tensor %x, %one
  %b = aten.linear.default %a, %two
  %b2 = aten.add.Tensor %b, 1
  %sum_b = aten.mean.default %b2
  %c = aten.mul.Tensor %a, %number
  %d = aten.add.Tensor %c, %one
  %e = aten.linear.default %d, %frozen
  %sum_e = aten.mean.default %e
  %x16 = aten._to_copy.default %x, dtype=f16
  %f = aten.linear.default %x16, %half
  %f1 = aten.sub.Tensor %f, 1
  %f2 = aten.mul.Tensor %f1, %f1
  %f3 = aten._to_copy.default %f2, dtype=f32
  %sum_f = aten.mean.default %f3
  %xb = aten._to_copy.default %x, dtype=bf16
  %g = aten.linear.default %xb, %bf16
  %g1 = aten._to_copy.default %g, dtype=f32
  %g2 = aten.sub.Tensor %g1, 1
  %g3 = aten.mul.Tensor %g2, %g2
  %sum_g = aten.mean.default %g3
  %xc = aten._to_copy.default %d, dtype=c64
  %h = aten.matmul.default %xc, %complex
  %h1 = aten.abs.default %h
  %sum_h = aten.mean.default %h1
  %w = aten.sub.Tensor %wide, 1
  %w2 = aten.mul.Tensor %w, %w
  %w3 = aten.mean.default %w2
  %sum_w = aten._to_copy.default %w3, dtype=f32
  %i = aten.index_select.default %x, 1, %places
  %sum_i = aten.mean.default %i
  %j = aten.sum.default %empty
  %l1 = aten.add.Tensor %sum_b, %sum_e
  %l2 = aten.add.Tensor %l1, %sum_f
  %l3 = aten.add.Tensor %l2, %sum_g
  %l4 = aten.add.Tensor %l3, %sum_h
  %l5 = aten.add.Tensor %l4, %sum_w
  %l6 = aten.add.Tensor %l5, %sum_i
  %l7 = aten.add.Tensor %l6, %j
  %l8 = aten.mul.Tensor %l7, %l7
  %loss = aten.add.Tensor %l8, %l7
  out user_output 0 = %loss
}
END_OF_PROGRAM
cat > train.yaml <<END
aot: 1
vars: {backend: backend-ref}
model: {import: ir, path: odd.ir}
stages: [{use: functionalize}, {use: fsdp, with: {replicate-under: 0}}, {use: autograd}, {use: partition-mincut}, {use: overlap},
  {use: "\${backend}"}]
run:
  train: {steps: 4, optimizer: sgd, lr: 0.01, seed: 4, log-every: 1}
END
# Gradients of halves are added up in f32 and rounded once, where micro steps round each time: that is the same for two.
sed -E 's/("half"|"bf16")( : .*) grad/\1\2/' odd.ir > three.ir
more="--set model.path=three.ir"
for backend in ref cpu; do
  for n in 2 3; do
    set --
    [ $n = 2 ] || set -- $more
    alone $n "$@" --set vars.backend=backend-$backend
    for mode in shard shard-grad replicate; do
      together $n "$@" --set vars.backend=backend-$backend --set stages.fsdp.mode=$mode
      equal $n "$n ranks, $backend, $mode"
    done
  done
  alone 4 $more --set vars.backend=backend-$backend
  together 4 $more --set vars.backend=backend-$backend --set stages.fsdp.mode=hybrid --set stages.fsdp.columns=2
  equal 4 "2 x 2 ranks, $backend"
done
[ "$(cut -d' ' -f2 all | sort -u | wc -l)" = 4 ] || complain "nothing is trained: $(cat all)"

# Nothing is large enough to be shared out: every rank has all of it.
alone 3 $more
together 3 $more --set stages.fsdp.replicate-under=1MiB
equal 3 "nothing over the threshold"
alone 1 $more # without what micro steps keep
[ "$(sort -u held)" = "$(jq .memory.leaf_bytes one.json)" ] || complain "ranks hold $(sort -u held) of $(jq .memory.leaf_bytes one.json)"

together 3 --set run.train.steps=2 --set run.train.checkpoint=ckpt
status 0 "$aothost" export ckpt --full -o whole.st
for n in 2 5; do
  together $n --set run.train.resume=ckpt; mv all from_parts
  together $n --set run.train.resume=whole.st
  [ -s all ] && same from_parts all
done

sed 's/"complex" : c64\[8, 8\]/& grad/' odd.ir > trained.ir
status 2 "$local_ranks" 2 train.yaml --set model.path=trained.ir
says 'gradients of c64, as of parameter "complex", are not added up over ranks'
says 'hint: hold it as real numbers'
# Collectives of complex numbers, which a program may have by itself: told by who cannot do them, with the node.
sed 's/%h = .*/%copy = aot.copy_to_ranks.default %complex, "world"\n  %h = aten.matmul.default %xc, %copy/' odd.ir > copied.ir
status 2 "$local_ranks" 2 train.yaml --set model.path=copied.ir
says 'backend backend-ref does not support 1 node'
says 'c64\[8, 8\].* = aot.copy_to_ranks.default'
grep -q 'contract violation' out && complain "a plugin is blamed: $(grep 'contract violation' out)"
finish
