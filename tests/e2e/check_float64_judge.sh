#!/bin/sh
# verify --against f64: what differs is judged by what PyTorch computed in float64, never by a program of ours.
. "$(dirname "$0")/lib.sh"
found=$root/tests/fixtures/found2/judge_f64
# verify STATUS MODEL EXPECT FLAGS..: records beside EXPECT
verify() {
  code=$1 model=$2 expect=$3; shift 3
  status "$code" "$aothost" verify "$root/pipelines/verify.yaml" --model "$model/train.pt2" --expect "$expect" --against f64 "$@"
}
copy() { cp "$1/expected.safetensors" e.safetensors; cp "$1/expected.f64.safetensors" e.f64.safetensors; }

# torch.export loses the gradient that an autograd.Function reverses: the program's has the opposite sign
reversed=$found/reversed_gradient
verify 1 "$reversed" "$reversed/expected.safetensors" --json v.json
says 'grad\.a\.weight .* 2 +[0-9.e-]+  differs: 16 elements'
says '^3 of 5 keys agree'
# without float64 results nothing is judged
cp "$reversed/expected.safetensors" alone.safetensors
verify 1 "$reversed" alone.safetensors --json v.json
says 'no float64 results beside it'
says 'grad\.a\.weight .* not judged: there are no float64 results; 16 elements'
says '^2 that differ are not judged'
for key in '"n_not_judged": 2' '"verdict": "not judged"' '"why_not_judged": "there are no float64 results"' '"f64_off": null'; do has v.json "$key"; done

# opposite sign, doubled, 30 % off: in the recorded float32 numbers, then in PyTorch's, both as a wrong rule would have it
for factor in -1 2 1.3 0.7 0 1.002; do
  copy "$models/mlp"
  "$edit" "$models/mlp/expected.safetensors" e.safetensors scale grad.m.2.bias "$factor"
  verify 1 "$models/mlp" e.safetensors
  says 'grad\.m\.2\.bias .* differs: '
  "$edit" "$models/mlp/expected.f64.safetensors" e.f64.safetensors scale grad.m.2.bias "$factor"
  verify 1 "$models/mlp" e.safetensors
  says 'grad\.m\.2\.bias .* differs: '
  # where only the judge is of another opinion than both, what agrees stays so
  cp "$models/mlp/expected.safetensors" e.safetensors
  verify 0 "$models/mlp" e.safetensors
done
# a backend that computes zeros
verify 1 "$models/mlp" "$models/mlp/expected.safetensors" --plugin-dir "$5/arms" --set vars.backend=zeros
says 'grad\.m\.2\.bias .* 1 .* differs'
# a gradient that PyTorch's own float32 runs are too far from: nobody can tell
copy "$models/mlp"
"$edit" "$models/mlp/expected.safetensors" e.safetensors scale grad.m.2.weight 1.01
"$edit" "$models/mlp/expected.f64.safetensors" e.f64.safetensors add distance.grad.m.2.weight 1
verify 1 "$models/mlp" e.safetensors
says "grad\.m\.2\.weight .* not judged: PyTorch's own numbers are too far from float64"
"$edit" "$models/mlp/expected.f64.safetensors" e.f64.safetensors drop grad.m.2.weight
verify 1 "$models/mlp" e.safetensors
says 'grad\.m\.2\.weight .* not judged: there is no float64 record of it'

# rounding is noise: of two orders of sums, of a gradient that is zero but for rounding, of complex numbers
for model in "$models/resnet_tiny" "$found/bias_before_norm" "$root/tests/models/complex_linear"; do
  verify 0 "$model" "$model/expected.safetensors" --rtol 0 --atol 0 --set vars.backend=backend-cpu --json v.json
  says '^[0-9]+ of them differ by noise'
  for key in '"against": "f64"' '"n_noise": [1-9]' '"verdict": "noise"' '"f64_off": [0-9]' '"expected_f64_off": [0-9]'; do has v.json "$key"; done
done
# .. which a wrong gradient of that size is not
copy "$found/bias_before_norm"
"$edit" "$found/bias_before_norm/expected.safetensors" e.safetensors add grad.a.bias 1e-4
verify 1 "$found/bias_before_norm" e.safetensors --atol 0
says 'grad\.a\.bias .* differs: 8 elements'

# records of other inputs, and of another place
copy "$models/mlp"
"$edit" "$models/mlp/expected.f64.safetensors" e.f64.safetensors add input.0 0.5
verify 2 "$models/mlp" e.safetensors
says 'these float64 results are of other inputs: "input\.0"'
# one backend against another: the records beside the inputs' file
status 0 "$aothost" run "$root/pipelines/verify.yaml" --model "$models/mlp/train.pt2" --inputs "$models/mlp/expected.safetensors" --grads \
  --outputs ref.st
status 0 "$aothost" verify "$root/pipelines/verify-cpu.yaml" --model "$models/mlp/train.pt2" --expect ref.st --rtol 0 --atol 0 \
  --inputs "$models/mlp/expected.safetensors" --against f64
says 'differ by noise'
status 1 "$aothost" verify "$root/pipelines/verify.yaml" --model "$models/mlp/train.pt2" --expect ref.st --against f64 \
  --inputs "$models/mlp/expected.safetensors" --plugin-dir "$5/arms" --set vars.backend=zeros
cp "$models/mlp/expected.safetensors" far.safetensors
status 0 "$aothost" verify "$root/pipelines/verify-cpu.yaml" --model "$models/mlp/train.pt2" --expect far.safetensors --rtol 0 --atol 0 \
  --against "$models/mlp/expected.f64.safetensors"
says 'differ by noise'

# a budget of peak memory in bytes, which twice as wide numbers would not meet
cat > budget.yaml <<'Y'
aot: 1
vars: {backend: backend-cpu, budget: 0}
model: {path: none.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut, with: {objective: memory, budget: "${budget}"}}, {use: "${backend}"}]
Y
gpt=$models/gpt_tiny
budget=$("$aothost" verify budget.yaml --model "$gpt/train.pt2" --expect "$gpt/expected.safetensors" --set vars.budget=0.7 --json - |
  jq '[.stages[].numbers["budget-bytes"].value // empty] | first')
[ "${budget:-0}" -gt 0 ] || complain "no budget of bytes: $budget"
status 0 "$aothost" verify budget.yaml --model "$gpt/train.pt2" --expect "$gpt/expected.safetensors" --set "vars.budget=$budget" --against f64 \
  --rtol 0 --atol 0
says 'differ by noise'
# inputs that share memory
shared=$root/tests/fixtures/aliasing/dup_mut
status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model "$shared/train.pt2" --expect "$shared/expected.safetensors" --against f64
finish
