#!/bin/sh
# A model without gradients: the pipelines that come along run it forward only; where stage autograd is asked strictly it refuses with
# a hint, and that is no failure of a plugin.
. "$(dirname "$0")/lib.sh"
program=$root/tests/fixtures/dtype_views/wider
for pipeline in verify verify-mincut verify-cpu; do
  status 0 "$aothost" verify "$root/pipelines/$pipeline.yaml" --model "$program/train.pt2" --expect "$program/expected.safetensors"
done
status 0 "$aothost" run "$root/pipelines/quickstart.yaml" --model "$program/train.pt2" --set run.train=null --inputs random
status 2 "$aothost" run "$root/pipelines/quickstart.yaml" --model "$program/train.pt2"
says 'nothing to train'
cat > strict.yaml <<'YAML'
aot: 1
stages: [{use: functionalize}, {use: autograd}, {use: partition-default}, {use: backend-ref}]
YAML
status 2 "$aothost" verify strict.yaml --model "$program/train.pt2" --expect "$program/expected.safetensors"
says 'hint: run a pipeline without autograd, or set its option when-nothing to forward-only'

# What a backend finds in the run is told with its node; it is the data's fault, or a limit.
cat > index.ir <<'IR'
aot 1
properties imported
leaf 0 user_input 0 "x" : f32[3]
leaf 1 constant : i64[1] data "0700000000000000"
graph @forward forward {
  in %x = user_input 0 : f32[3]
  in %i = constant 1 : i64[1]
  %y = aten.index_select.default %x, 0, %i
  out user_output 0 = %y
}
IR
for backend in ref cpu; do
  status 2 "$aothost" run "$root/pipelines/inference.yaml" --model index.ir --inputs random --set vars.backend=backend-$backend
  says 'index'
done
[ -z "$(ls | grep bundle)" ] || complain "a bundle nobody asked for"
finish
