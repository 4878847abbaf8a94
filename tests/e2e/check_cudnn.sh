#!/bin/sh
# Attention and convolutions by cuDNN's double: losses in bfloat16 are backend-ref's, recorded calls agree; and the same
# where there is no cuDNN, attention in parts, convolutions by kernels of their own.
. "$(dirname "$0")/lib.sh"
cat > p.yaml <<EOF
aot: 1
vars: {backend: backend-ref}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: "\${backend}"}]
run:
  train: {steps: 2, lr: 0.05, optimizer: sgd, log-every: 0, precision: bf16, loss-scale: none, clip-norm: 1.0,
          data: $models/gpt_tiny/expected.safetensors}
EOF
loss() { sed -n 's/.*"last_loss": \([0-9.e-]*\),*/\1/p' run.json; }
calls() { grep -A1 '"cudnn-calls"' run.json | sed -n 's/.*"value": \([0-9]*\).*/\1/p'; }
status 0 "$aothost" run p.yaml --json run.json
reference=$(loss)

# on_gpu CALLS: one for each of the two layers and directions
on_gpu() {
  status 0 "$aothost" run p.yaml --set vars.backend=backend-cuda --set run.device=cuda --json run.json
  awk -v a="$(loss)" -v b="$reference" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && d <= 2e-4 * b) }' ||
    complain "with $1 calls of cuDNN's the loss is $(loss), and $reference on backend-ref"
  [ "$(calls)" = "$1" ] || complain "$(calls) calls of cuDNN's, and not $1"
}
# recorded OPERATORS TIMES: those of the calls in halves, so many of cuDNN's
recorded() {
  ln -sf "$root/tests/fixtures/ops_halves/data.safetensors" data.safetensors
  { echo '['; grep -E "\"op\":\"aten\.($1)\." "$root/tests/fixtures/ops_halves/cases.json" | sed '$s/,$//'; echo ']'; } > cases.json
  status 0 "$aothost" ops --cases cases.json --backend backend-cuda --device cuda
  says "cudnn-calls $2, host-fallbacks 0\$"
}
convolutions='convolution|conv[123]d|conv_transpose2d'
on_gpu 4
recorded "$convolutions|scaled_dot_product_attention" 44
export AOT_CUDNN=/nowhere
on_gpu 0
recorded "$convolutions" 0
status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$models/resnet_tiny/train.pt2" \
  --expect "$models/resnet_tiny/expected.safetensors" --set vars.backend=backend-cuda --set run.device=cuda
says '^39 of 39 keys agree'
unset AOT_CUDNN
finish
