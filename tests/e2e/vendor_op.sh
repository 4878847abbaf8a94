#!/bin/sh
# vendor_op.sh AOTHOST EDIT ROOT CC [FLAGS]: examples/vendor_op as a user builds it, with nothing but the installed headers: a written
# argument, its functional form, kernel and derivative at once, trained to the losses of PyTorch's own operators.
. "$(dirname "$0")/lib.sh"
cc=$4; flags=${5:-}
example=$root/examples/vendor_op
mkdir -p prefix/include plugins both
cp -r "$root/plugin-api/aot" prefix/include/
build() { $cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror $flags -I prefix/include "$1" -o "$2" -lm || exit 1; }
build "$example/gate.c" plugins/gate.so
cp plugins/gate.so both/
build "$root/examples/vendor_backend/npu.c" both/npu.so
export AOT_PLUGIN_PATH=$PWD/plugins

losses() { status 0 "$aothost" run "$example/pipeline.yaml" "$@"; grep '^step' out | sed 's/  lr.*//'; }
losses --model "$example/plain.ir" > plain
has plain 'step 20/20  loss 0\.[0-9]+'
for backend in backend-cpu backend-ref; do
  losses --set vars.backend=$backend > vendor
  same plain vendor
  losses --set vars.backend=$backend --set run.train.step=three-graphs > vendor
  same plain vendor
  losses --set vars.backend=$backend --set run.device=strict > vendor
  same plain vendor
done

# Each of the three does its part, none switches another off.
status 0 "$aothost" run "$example/pipeline.yaml" --dump-dir d
has d/01.functionalize.ir 'example_gate.gate.default'
has d/02.autograd.ir 'example_gate.gate_backward.default'
grep -q 'example_gate.gate_.default\|auto_functionalized' d/0[1-9].*.ir && complain "the written argument is still there"
status 0 "$aothost" run "$example/pipeline.yaml" --json r.json
tr -d ' \n' < r.json > flat
grep -q '"copies-asked":{"value":[1-9]' flat && complain "the functional form asks for copies"

# Beside a vendor's backend, which leaves the operator to who has a kernel for it.
sed 's/  - use: ${backend}/  - use: example.npu\n  - use: ${backend}/' "$example/pipeline.yaml" > both.yaml
AOT_PLUGIN_PATH=$PWD/both status 0 "$aothost" run both.yaml --model "$example/model.ir" -v
says 'example.npu leaves example_gate.gate.default, 1 node: it has no kernel for this operator'
grep '^step' out | sed 's/  lr.*//' > vendor
same plain vendor

AOT_PLUGIN_PATH= status 2 "$aothost" run "$example/pipeline.yaml"
says 'example_gate.gate_.default'
finish
