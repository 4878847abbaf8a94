#!/bin/sh
# traced_windows.sh AOTHOST LOCAL_RANKS ROOT: a program as FSDP's own tracing leaves it, with windows in which a parameter's storage is filled from
# a gather and emptied again: two ranks with a shard each train as one rank does with the whole parameter.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/ranks_lib.sh"
# Both shards begin alike, so that one program is that of both ranks.
shard=0000003f000080be0000403e000000bf0000803ecdcc4c3e9a9919bfcdcccc3d
cat > traced.ir <<END
aot 1
properties imported sharded
leaf 0 user_input 0 "whole" : f32[4, 4]
leaf 1 parameter "w" : f32[8] grad data "$shard"
leaf 2 user_input 1 "x" : f32[2, 4]
graph @main forward {
  in %p = user_input 0 : f32[4, 4]
  in %s = parameter 1 : f32[8] grad
  in %x = user_input 2 : f32[2, 4]
  %g = _c10d_functional.all_gather_into_tensor.default %s, 2, "0"
  %w = _c10d_functional.wait_tensor.default %g
  %full = aten.view.default %w, [4, 4]
  inductor.resize_storage_bytes_.default %p, 64
  fsdp.copy_.default %p, %full
  %t = aten.t.default %p
  %y = aten.mm.default %x, %t
  inductor.resize_storage_bytes_.default %p, 0
  %a = aten.tanh.default %y
  %g2 = _c10d_functional.all_gather_into_tensor.default %s, 2, "0"
  %w2 = _c10d_functional.wait_tensor.default %g2
  %again = aten.view.default %w2, [4, 4]
  inductor.resize_storage_bytes_.default %p, 64
  fsdp.copy_.default %p, %again
  %z = aten.mm.default %a, %p
  inductor.resize_storage_bytes_.default %p, 0
  %q = aten.mul.Tensor %z, %z
  %m = aten.mean.default %q
  %half = aten.mul.Scalar %m, 0.5
  %loss = aot.sum_over_ranks.default %half, "world"
  out user_output 0 = %loss
}
END
cat > plain.ir <<END
aot 1
properties imported
leaf 0 user_input 0 "whole" : f32[4, 4]
leaf 1 parameter "w" : f32[16] grad data "$shard$shard"
leaf 2 user_input 1 "x" : f32[2, 4]
graph @main forward {
  in %p = user_input 0 : f32[4, 4]
  in %s = parameter 1 : f32[16] grad
  in %x = user_input 2 : f32[2, 4]
  %full = aten.view.default %s, [4, 4]
  %t = aten.t.default %full
  %y = aten.mm.default %x, %t
  %a = aten.tanh.default %y
  %z = aten.mm.default %a, %full
  %q = aten.mul.Tensor %z, %z
  %m = aten.mean.default %q
  out user_output 0 = %m
}
END
cat > train.yaml <<'END'
aot: 1
vars: {backend: backend-ref, partition: partition-default, program: plain.ir}
model: {import: ir, path: "${program}"}
stages: [{use: functionalize}, {use: autograd}, {use: "${partition}"}, {use: "${backend}"}]
run:
  train: {steps: 6, optimizer: adamw, lr: 0.05, seed: 4, log-every: 1}
END
sed 's/{use: "${backend}"}/{use: overlap}, &/' train.yaml > overlapped.yaml

alone 2
whole=$(jq .memory.leaf_bytes one.json)
for backend in ref cpu; do
  for partition in default mincut; do
    together 2 --set vars.program=traced.ir --set vars.backend=backend-$backend --set vars.partition=partition-$partition
    equal 2 "windows, $backend, partition-$partition"
  done
done
[ "$(sort -u held)" -lt "$whole" ] || complain "of $whole bytes a rank holds $(cat held)"
cp overlapped.yaml train.yaml
together 2 --set vars.program=traced.ir --set vars.backend=backend-cpu
equal 2 "windows, overlapped"
# No window is left, what it stood for is a gather, and what must be true of fsdp's graphs is true of these.
status 0 "$aothost" opt traced.ir --use functionalize --use autograd --use partition-mincut -o program.ir
grep -qE 'resize_storage|fsdp\.copy_' program.ir && complain 'windows are left'
has program.ir '_c10d_functional.reduce_scatter_tensor.default'
awk -v mode=shard-grad -v parts=2 -v shards=1 -f "$root/tests/e2e/rank_graphs.awk" plain.ir program.ir > broken || complain "$(cat broken)"
# One that never gathers is another program: the test can fail.
sed 's/%again = aten.view.default %w2/%again = aten.view.default %w/; s/0.5$/0.25/' traced.ir > half.ir
together 2 --set vars.program=half.ir
awk 'FNR == NR { one[$1] = $2; next } { d = $2 / one[$1] - 1; if (d * d > 1e-4) far = 1 } END { exit !far }' one all || complain 'a wrong mean is not seen'
finish
