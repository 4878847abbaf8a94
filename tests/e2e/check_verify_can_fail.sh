#!/bin/sh
# verify must notice a wrong number, a missing result, another shape, a missing input; and say which.
. "$(dirname "$0")/lib.sh"
good=$models/mlp/expected.safetensors
verify() { status "$1" "$aothost" verify "$root/pipelines/verify.yaml" --model "$models/mlp/train.pt2" --expect "$2" $3; }

verify 0 "$good"
says '^7 of 7 keys agree'
"$edit" "$good" wrong.st add grad.m.2.bias 0.001
verify 1 wrong.st
says 'grad.m.2.bias .* differs: 32 elements'
says '^6 of 7 keys agree'
verify 0 wrong.st '--atol 0.01'
"$edit" "$good" missing.st rename grad.m.2.bias grad.m.9.bias
verify 1 missing.st
says 'grad.m.9.bias .* missing'
"$edit" "$good" shape.st drop grad.m.2.bias rename grad.m.0.weight grad.m.2.bias
verify 1 shape.st
says 'grad.m.2.bias .* shape: got f32.32.$'
"$edit" "$good" input.st drop input.1
verify 2 input.st
says 'no tensor "input.1"'
"$edit" "$good" swapped.st rename input.0 x rename input.1 input.0 rename x input.1
verify 2 swapped.st
says 'input 0 .*expected f32\[8, 16\], got i64\[8\]'
head -c 100 "$good" > cut.st
verify 2 cut.st
says 'cut.st'
verify 2 absent.st
# several files, and the machine-readable answer
status 1 "$aothost" verify "$root/pipelines/verify.yaml" --model "$models/mlp/train.pt2" --expect "$good" --expect wrong.st --json v.json
says '^13 of 14 keys agree'
for key in '"command": "verify"' '"ok": false' '"n_keys": 14' '"n_ok": 13' '"verdict": "differs"' '"max_abs":' '"max_rel":' '"n_bad": 32' '"stages":' '"pipeline":' '"model":' \
  '"rtol":' '"atol":' '"keys":' '"file":' '"key":' '"dtype": "f32"' '"shape":'; do
  has v.json "$key"
done
# no gradients without a backward: those rows are missing
status 1 "$aothost" verify "$root/pipelines/inference.yaml" --model "$models/mlp/train.pt2" --expect "$good"
says '^1 of 7 keys agree'
status 2 "$aothost" verify "$root/pipelines/verify.yaml" --model "$models/mlp/train.pt2"
says '--expect'
status 2 "$aothost" verify "$root/pipelines/verify.yaml" --model "$models/mlp/train.pt2" --expect "$good" --rtol x

# rows that fail come first
verify 1 wrong.st
[ "$(sed -n 3p out | cut -d' ' -f1)" = grad.m.2.bias ] || complain "the row that fails is not the first"
has v.json '"rel_l2":'

# against float64: the recorded gradient is the one that is off, so the difference is not ours
verify 0 wrong.st '--against f64'
says 'grad.m.2.bias .* noise: 32 elements'
says '^1 of them differ by noise'
status 0 "$aothost" verify "$root/pipelines/verify-cpu.yaml" --model "$models/resnet_tiny/train.pt2" --rtol 1e-9 --atol 0 --against f64 \
  --expect "$models/resnet_tiny/expected.safetensors" --json f64.json
for key in '"against": "f64"' '"n_noise": [1-9]' '"verdict": "noise"' '"f64_off": [0-9]' '"expected_f64_off": [0-9]'; do has f64.json "$key"; done
# a backend that computes zeros is far from float64, whatever was recorded
status 1 "$aothost" verify "$root/pipelines/verify.yaml" --model "$models/mlp/train.pt2" --expect "$good" --against f64 \
  --plugin-dir "$5/arms" --set vars.backend=zeros
says 'grad.m.2.bias .* 1 .* differs'
# halves are widened too, and so is what zeros() and arange() make without being asked for a dtype; a missing row stays one
status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$root/tests/fixtures/random/13/train.pt2" --against f64 \
  --expect "$root/tests/fixtures/random/13/expected.safetensors"
status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$root/tests/fixtures/regions/half_precision/train.pt2" \
  --expect "$root/tests/fixtures/regions/half_precision/expected.safetensors" --against f64
# what another backend computed, in bfloat16: inputs are of another file than results
sed -e 's/- use: functionalize/&\n  - use: autocast/' "$root/pipelines/verify.yaml" > halves.yaml
status 0 "$aothost" run halves.yaml --model "$models/gpt_tiny/train.pt2" --inputs "$models/gpt_tiny/expected.safetensors" --grads --outputs ref.st
halves() { # STATUS SETTINGS..
  code=$1; shift
  status $code "$aothost" verify halves.yaml --model "$models/gpt_tiny/train.pt2" --expect ref.st "$@"
}
halves 0 --inputs "$models/gpt_tiny/expected.safetensors" --against f64 --set vars.backend=backend-cpu
# .. and without a tangent among the inputs the gradients are those of the loss, as `run --grads` has it
dropout=$root/tests/models/dropout_bert
sed -e 's/- use: functionalize/&\n  - use: rng/' "$root/pipelines/verify.yaml" > draws.yaml
status 0 "$aothost" run draws.yaml --model "$dropout/train.pt2" --inputs "$dropout/inputs.safetensors" --grads --outputs loss.st
status 0 "$aothost" verify draws.yaml --model "$dropout/train.pt2" --inputs "$dropout/inputs.safetensors" --expect loss.st --set vars.backend=backend-cpu
says '^[0-9]+ of [0-9]+ keys agree'
halves 1 --inputs "$models/gpt_tiny/expected.safetensors" --against f64 --plugin-dir "$5/arms" --set vars.backend=zeros
halves 2 --set vars.backend=backend-cpu
says 'there is no tensor "input.0"'
halves 2 --inputs none.st
# floats of integers alone stay float32, as they are in a model of float64
status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$root/tests/models/counted_roots/train.pt2" --rtol 1e-9 --atol 0 \
  --expect "$root/tests/models/counted_roots/expected.safetensors" --against f64
# .. also beside a number, which does not promote what has dimensions
cat > number.ir <<'IR'
aot 1
properties imported functional
leaf 0 constant "n" : i64[2] data "03000000000000000700000000000000"
leaf 1 constant "c" : f32[] data "0000c03f"
graph @forward forward {
  in %n = constant 0 : i64[2]
  in %c = constant 1 : f32[]
  %q : f32[2] = aten.div.Tensor %n, 2
  %r : f32[2] = aten.div.Tensor %q, %c
  out user_output 0 "r" = %r
}
IR
status 0 "$aothost" run "$root/pipelines/verify.yaml" --model number.ir --inputs random --outputs number.st
status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model number.ir --expect number.st --against f64
verify 1 missing.st '--against f64'
shared=$root/tests/fixtures/aliasing/dup_mut
status 2 "$aothost" verify "$root/pipelines/inference.yaml" --model "$shared/train.pt2" --expect "$shared/expected.safetensors" --against f64
says 'inputs that share memory'
verify 2 "$good" '--against f32'
says '--against takes f64'
finish
