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

# agrees CALLS MOST: of cuDNN's, and the reference's loss but for so much of it
agrees() {
  awk -v a="$(loss)" -v b="$reference" -v most="$2" \
    'BEGIN { d = a - b; if (d < 0) d = -d; if (b < 0) b = -b; exit !(a != "" && d <= most * b) }' ||
    complain "with $1 calls of cuDNN's the loss is $(loss), and $reference on backend-ref"
  [ "$(calls)" = "$1" ] || complain "$(calls) calls of cuDNN's, and not $1"
}
# on_gpu CALLS: one for each of the two layers and directions
on_gpu() {
  status 0 "$aothost" run p.yaml --set vars.backend=backend-cuda --set run.device=cuda --json run.json
  agrees "$1" 2e-4
}
# recorded FIXTURE OPERATORS TIMES: those of its calls, so many of cuDNN's
recorded() {
  folder=$root/tests/fixtures/$1
  ln -sf "$folder/data.safetensors" data.safetensors
  rm -f exceptions.txt
  [ ! -f "$folder/exceptions.txt" ] || cp "$folder/exceptions.txt" .
  { echo '['; grep -E "\"op\":\"aten\.($2)\." "$folder/cases.json" | sed '$s/,$//'; echo ']'; } > cases.json
  status 0 "$aothost" ops --cases cases.json --backend backend-cuda --device cuda
  says "cudnn-calls $3, host-fallbacks 0\$"
}
convolutions='convolution|conv[123]d|conv_transpose2d'
on_gpu 4
recorded ops_halves "$convolutions|scaled_dot_product_attention" 41
# Images with time outermost lie in no order of cuDNN's: copies do.
recorded ops_numerics conv_tbc 8
# Masks and shared heads: a call forward and one again, and two for the gradients, which have the forward once more.
recorded ops_attention scaled_dot_product_attention 52

# Masks that say what is_causal says, or nothing, are not read.
cat > masks.yaml <<EOF
aot: 1
vars: {backend: backend-ref}
stages: [{use: functionalize}, {use: rng}, {use: autograd}, {use: partition-mincut}, {use: "\${backend}"}]
run:
  train: {steps: 2, lr: 1e-4, optimizer: sgd, log-every: 0, data: random}
EOF
in_parts=$reference
# whole FILE CALLS MOST: as agrees
whole() {
  status 0 "$aothost" run masks.yaml --model "$root/tests/e2e/$1" --json run.json
  reference=$(loss)
  status 0 "$aothost" run masks.yaml --model "$root/tests/e2e/$1" --set vars.backend=backend-cuda --set run.device=cuda \
    --profile --json run.json
  agrees "$2" "$3"
}
whole causal_masks.ir 10 1e-3
! grep -q '  mask  ' out || complain "it makes a bias of a causal mask"
# What is dropped is drawn as on every backend; the gradients' own draw is known to be the forward's.
whole dropped_attention.ir 6 1e-3
says ' 3  dnn  *aot.dropout_attention_backward'
# Heads of 64 or 128 go to kernels which draw it in place: no mask is made, but where cuDNN is asked for.
whole drawn_attention.ir 0 1e-4
says ' 3  own attention  *aot.dropout_attention.default'
says ' 6  own attention  *aot.dropout_attention_backward'
! grep -q 'bf16\[2, 4, 20, 20\]' out || complain "it makes masks that are drawn in place"
status 0 "$aothost" run masks.yaml --model "$root/tests/e2e/drawn_attention.ir" --set vars.backend=backend-cuda \
  --set run.device=cuda --set stages.backend-cuda.attention=cudnn --profile --json run.json
agrees 6 3e-3
says '  loop  *aten._to_copy.default  *bf16\[2, 4, 20, 20\]'
# Gradients in a graph of their own, which draws again, have the forward once more.
status 0 "$aothost" run masks.yaml --model "$root/tests/e2e/drawn_attention.ir" --set vars.backend=backend-cuda \
  --set run.device=cuda --set run.train.step=three-graphs --profile --json run.json \
  --set "stages.partition-mincut.policies=recompute op aot.philox_uniform; recompute op aten.lt; recompute op aten._to_copy"
agrees 0 1e-4
says ' 9  own attention  *aot.dropout_attention_backward'
# A mask that others read is made, and read; what is cast to the mask alone is not.
sed -e 's/{use: functionalize}, {use: rng}, //' masks.yaml > drawn.yaml
status 0 "$aothost" run drawn.yaml --model "$root/tests/e2e/shared_masks.ir" --json run.json
reference=$(loss)
status 0 "$aothost" run drawn.yaml --model "$root/tests/e2e/shared_masks.ir" --set vars.backend=backend-cuda \
  --set run.device=cuda --profile --json run.json
agrees 2 2e-3
says ' 1  dnn  *aot.dropout_attention_backward'
says ' 2  own attention  *aot.dropout_attention_backward'

# Gradients with sums in any order: as good, in less memory, which is what the plan of memory says; where cuDNN has no
# engine for them they are ordered.
cat > long.ir <<'EOF'
aot 1
properties imported functional
leaf 0 parameter "p" : f32[8] grad data "0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f"
leaf 1 user_input 0 "x" : f32[1, 2, 200, 8]
graph @forward forward {
  in %p = parameter 0 : f32[8] grad
  in %x = user_input 1 : f32[1, 2, 200, 8]
  %a = aten.mul.Tensor %x, %p
  %q = aten._to_copy.default %a, dtype=bf16
  %k = aten._to_copy.default %x, dtype=bf16
  %y = aten.scaled_dot_product_attention.default %q, %k, %k, none, 0.0, true
  %z = aten.scaled_dot_product_attention.default %y, %k, %q
  %f = aten._to_copy.default %z, dtype=f32
  %loss = aten.sum.default %f
  out user_output 0 "loss" = %loss
}
EOF
arena() { grep -A1 '"arena-bytes"' run.json | sed -n 's/.*"value": \([0-9]*\).*/\1/p'; }
on_double() { AOT_CUDA_DOUBLE=$1; export AOT_CUDA_DOUBLE; shift; "$@"; code=$?; unset AOT_CUDA_DOUBLE; return $code; }
# sums HOW [SETTINGS-OF-THE-DOUBLE]
sums() {
  status 0 on_double "${2:-seed=1}" "$aothost" run masks.yaml --model long.ir --set vars.backend=backend-cuda --set run.device=cuda \
    --set "stages.backend-cuda.attention-sums=$1" --no-cache --json run.json
  agrees 4 1e-3
}
status 0 "$aothost" run masks.yaml --model long.ir --json run.json
reference=$(loss)
sums any
any=$(arena)
status 0 "$aothost" inspect masks.yaml --model long.ir --memory --set vars.backend=backend-cuda --set run.device=cuda \
  --set stages.backend-cuda.attention-sums=any --json plan.json
grep -q "\"arena_bytes\": $any\b" plan.json || complain "the plan is not of the $any bytes that a run takes"
sums ordered
ordered=$(arena) loss_in_order=$(loss)
[ "$((2 * ${any:-0}))" -lt "${ordered:-0}" ] || complain "$any bytes in any order, $ordered ordered"
sums any "cudnn-version=91901 cudnn-ordered=1"
[ "$(arena)" = "$ordered" ] && [ "$(loss)" = "$loss_in_order" ] ||
  complain "without an engine $(arena) bytes and $(loss), ordered $ordered and $loss_in_order"
reference=$in_parts

export AOT_CUDNN=/nowhere
on_gpu 0
recorded ops_halves "$convolutions" 0
status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$models/resnet_tiny/train.pt2" \
  --expect "$models/resnet_tiny/expected.safetensors" --set vars.backend=backend-cuda --set run.device=cuda
says '^39 of 39 keys agree'
unset AOT_CUDNN
finish
