#!/bin/sh
# gradcheck.sh AOTHOST EDIT ROOT CC [FLAGS]: `aothost gradcheck` finds a wrong derivative of a vendor's operator at its node; right models pass,
# kinks and conventions of PyTorch included; bad input ends with status 2, a crash in a derivative with 3.
. "$(dirname "$0")/lib.sh"
cc=$4; flags=${5:-}

# ---- a vendor's operator, in float64: right, with its two gradients exchanged, with a derivative that crashes
sed 's/float/double/g; s/AOT_F32/AOT_F64/g; s/expf/exp/g; s/takes f32/takes f64/' "$root/examples/vendor_op/gate.c" > right.c
sed 's/grads.id + i;/grads.id + 1 - i;/' right.c > wrong.c
sed 's/^  aot_value_t grads;/&\n  __builtin_trap();/' right.c > crash.c
for name in right wrong crash; do
  mkdir -p $name
  $cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden $flags -I "$root/plugin-api" $name.c -o $name/gate.so -lm || exit 1
done
cmp -s right.c wrong.c && complain "nothing is wrong in wrong.c"
sed 's/f32/f64/g; s/ data "[0-9a-f]*"//' "$root/examples/vendor_op/model.ir" > gate.ir
status 0 "$aothost" gradcheck gate.ir --plugin-dir right
says '^ok +%[a-z0-9_]+  example_gate\.gate\.default  .*deviation'
says '^4 nodes ok, 0 wrong, 0 skipped, 0 failed$'
status 1 "$aothost" gradcheck gate.ir --plugin-dir wrong --json r.json
says '^WRONG +%[a-z0-9_]+  example_gate\.gate\.default  .*(x|by) %'
says 'along a random direction the product is [-0-9.e]+, central differences are '
says '^3 nodes ok, 1 wrong, 0 skipped, 0 failed$'
tr -d ' \n' < r.json > flat
grep -q '"operator":"example_gate.gate.default"' flat && grep -q '"state":"wrong"' flat && grep -q '"wrong":1,' flat ||
  complain "the report lacks the wrong node"
status 0 "$aothost" gradcheck gate.ir --plugin-dir wrong --nodes 'aten.mul.*'
says '^1 nodes ok, 0 wrong'
status 3 "$aothost" gradcheck gate.ir --plugin-dir crash
says '^failed +%[a-z0-9_]+  example_gate\.gate\.default.*SIG'

# ---- kinks: relu and abs at 0, a maximum that is attained twice: no error
cat > kinks.ir <<'END'
aot 1
properties imported

leaf 0 parameter "w" : f32[4] grad data "00000000000000000000803f0000803f"

graph @main forward {
  in %w = parameter 0 : f32[4] grad
  %r : f32[4] = aten.relu.default %w
  %a : f32[4] = aten.abs.default %r
  %m : f32[] = aten.max.default %a
  out loss 0 = %m
}
END
status 0 "$aothost" gradcheck kinks.ir
says '^ok +%r  aten\.relu\.default'
says '^3 nodes ok, 0 wrong, 0 skipped'

# ---- models: padding rows of an embedding, masked scores, sizes that the run finds; straight-through estimators are named
status 0 "$aothost" gradcheck "$root/tests/models/dynamic_electra/train.pt2" --seed 3
says '^ok +%embedding  aten\.embedding\.default  module m\.electra\.embeddings\.word_embeddings  weight %'
says '^56 nodes ok, 0 wrong, 0 skipped'
status 0 "$aothost" gradcheck "$root/tests/models/masked_lengths/train.pt2"
says ' 0 wrong, 0 skipped'
status 0 "$aothost" gradcheck "$root/tests/models/fake_quantized/train.pt2"
says '^skipped .*fake_quantize.*: straight-through estimator$'

# ---- bad input
status 2 "$aothost" gradcheck nowhere.ir
says 'nowhere.ir'
status 2 "$aothost" gradcheck kinks.ir --nodes '%q*'
says "no node with a gradient has that name or operator"
status 2 "$aothost" gradcheck kinks.ir --tolerance 2
says "tolerance is a number between 0 and 1"
status 2 "$aothost" gradcheck kinks.ir --inputs nowhere.safetensors
says "cannot open nowhere.safetensors"
status 2 "$aothost" gradcheck kinks.ir --set run.seed=1
says "there is no pipeline"
status 2 "$aothost" gradcheck kinks.ir --autograd autogard
says 'autogard'
"$aothost" opt kinks.ir --use functionalize --use autograd -o joint.ir > out 2>&1 || complain "no joint program"
status 2 "$aothost" gradcheck joint.ir
says 'before autograd'
finish
