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
says 'missing tensor "input.1"'
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
says 'missing tensor "input.0"'
halves 2 --inputs none.st
verify 2 "$good" '--against f32'
says '--against takes f64 or a file of float64 results'
finish
