#!/bin/sh
# backend-cuda on its driver's double: training is backend-cpu's, draws are the same, a wrong index and a lost device are told.
. "$(dirname "$0")/lib.sh"
cuda='--set vars.backend=backend-cuda --set run.device=cuda'
cat > train.yaml <<EOF
aot: 1
vars: {backend: backend-cpu}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: "\${backend}"}]
run:
  train: {steps: 3, lr: 0.01, seed: 4, log-every: 1, data: {tokens: text.bin}, checkpoint: last.st}
EOF
yes 'the quick brown fox jumps over the lazy dog' | head -200 | tr 'a-z \n' '\001-\034' > text.bin
sed -e "s|path: .*|path: $root/tests/models/dropout_vit/train.pt2}|" -e 's/{use: autograd}/{use: rng}, &/' \
  -e 's/data: {.*}, checkpoint: last.st/data: random, checkpoint: last.st/' train.yaml > dropout.yaml

losses() { grep -oE '^step [0-9]+/[0-9]+  loss [0-9.]+' out > "$1"; }

for pipeline in train dropout; do
  status 0 "$aothost" run $pipeline.yaml
  losses cpu.losses
  [ "$(wc -l < cpu.losses)" = 3 ] || complain "there are not three losses"
  for seed in 1 2; do
    export AOT_CUDA_DOUBLE="seed=$seed"
    # shellcheck disable=SC2086
    status 0 "$aothost" run $pipeline.yaml $cuda
    losses cuda.losses
    same cpu.losses cuda.losses
  done
  mv cpu.losses $pipeline.losses
done
unset AOT_CUDA_DOUBLE
status 0 "$aothost" run train.yaml $cuda
says '^device cuda: [0-9.]+ [KM]iB there and back, 580 bytes of them a step, 3 calls$'

# a step at a time gives the same
export AOT_CUDA_SYNC=1
status 0 "$aothost" run train.yaml $cuda
unset AOT_CUDA_SYNC
losses cuda.losses
same train.losses cuda.losses

# what runs on the host is counted by operator and named, once
cat > host.ir <<EOF
aot 1
properties imported
leaf 0 user_input 0 "x" : f32[4, 4]
graph @main forward {
  in %x = user_input 0 : f32[4, 4]
  %q : f32[4, 4] strides [1, 4], %r : f32[4, 4] strides [1, 4] = aten.linalg_qr.default %x
  %q2 : f32[4, 4] strides [1, 4], %r2 : f32[4, 4] strides [1, 4] = aten.linalg_qr.default %r
  %y : f32[4, 4] = aten.linalg_matrix_exp.default %q2
  %z : f32[4, 4] = aten.mul.Tensor %y, %q
  out user_output 0 = %z
}
EOF
# shellcheck disable=SC2086
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model host.ir $cuda --json host.json
says '^warning: 3 nodes run on the host, with copies there and back: aten.linalg_qr.default \(2\), aten.linalg_matrix_exp.default \(1\) '
[ "$(grep -c 'host-fallbacks\]$' out)" = 1 ] || complain "the warning is given more than once"
tr -d ' \n' < host.json > flat.json
has flat.json '"host-fallbacks":\{"value":3'
has flat.json '"host-fallbacks/aten.linalg_qr.default":\{"value":2'

# a token that the table does not have; a device that traps in the middle; too little memory; a device of another kind
yes '~~~~' | head -200 > wrong.bin
status 2 "$aothost" run train.yaml $cuda --set run.train.data.tokens=wrong.bin
says 'index 126 is out of range for a dimension of size 96'
says '^  node %[0-9]+ : .*aten.embedding'
"$edit" "$models/mlp/expected.safetensors" in.st keep input.
"$edit" in.st class.st add input.1 100
# shellcheck disable=SC2086
status 2 "$aothost" run "$root/pipelines/verify.yaml" --model "$models/mlp/train.pt2" --inputs class.st $cuda
says 'target 10[0-9] is no class of 10'
export AOT_CUDA_DOUBLE=lose-at=90
status 2 "$aothost" run train.yaml $cuda
says 'CUDA device 0 \(a double of a GPU\) lost, its memory contents are gone: CUDA_ERROR_ILLEGAL_ADDRESS'
export AOT_CUDA_DOUBLE=memory=100000
status 2 "$aothost" run train.yaml $cuda
says 'has no memory for [0-9]+ bytes: [0-9]+ of its 100000 are free'
status 2 "$aothost" run train.yaml --set vars.backend=backend-cuda
says 'it runs on the device `cuda`'
finish
