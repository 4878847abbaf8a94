#!/bin/sh
# Symbolic sizes: any within the constraints runs, one outside is refused by input, dimension and constraint. A range, equal
# dimensions of two inputs, multiples, derived dimensions, the larger of two, a product, a guard; strides that are symbols. One
# compile serves all sizes.
. "$(dirname "$0")/lib.sh"
cat > inference.yaml <<'YAML'
aot: 1
vars: {backend: backend-ref}
stages: [{use: functionalize}, {use: "${backend}"}]
run: {inputs: random}
YAML

# model NAME SYMBOLS LEAF0 LEAF1: doubles both inputs
model() {
  {
    printf 'aot 1\nproperties imported\n%s\n' "$2"
    printf 'leaf 0 user_input 0 "x" : f32%s\nleaf 1 user_input 1 "y" : f32%s\n' "$3" "$4"
    printf 'graph @main forward {\n  in %%x = user_input 0 : f32%s\n  in %%y = user_input 1 : f32%s\n' "$3" "$4"
    printf '  %%a = aten.mul.Scalar %%x, 2.0\n  %%b = aten.mul.Scalar %%y, 2.0\n  out user_output 0 = %%a\n  out user_output 1 = %%b\n}\n'
  } > "$1.ir"
}
s='symbol s in [2, 8] hint 3'
model range "$s" '[s, 4]' '[4]'
model equal "$s" '[s, 4]' '[s]'
model multiple "$s" '[s * 4]' '[1]'
model twice "$s" '[s]' '[s * 2]'
model after "$s" '[s]' '[s + 1]'
model before "$s" '[s]' '[10 - s]'
model larger "$s
symbol t in [2, 8] hint 4" '[s, t]' '[max(s, t)]'
model product "$s
symbol t in [2, 8] hint 4" '[s, t]' '[s * t]'
model rest "$s" '[s]' '[mod(s, 3)]'
model guarded "$s
guard mod(s, 2) == 0 \"s is even\"" '[s, 4]' '[s // 2]'
model strided "$s
symbol t in [0, 64] hint 9" '[s, 4] strides [t, 1]' '[s] strides [t]'
model expanded "$s" '[s, 4] strides [0, 1]' '[s]'
model overlapping "$s" '[s, 4] strides [3, 1]' '[s]'
model strided_alike "$s
symbol t in [0, 64] hint 9" '[s, 4] strides [t, 1]' '[s, 5] strides [t, 1]'

seed=$root/tests/fixtures/scenarios/mut_simple/expected.safetensors
# call STATUS NAME SIZES0 SIZES1 [MESSAGE]: on both backends
call() {
  "$edit" "$seed" in.safetensors keep none ones input.0 "$3" ones input.1 "$4"
  for backend in backend-ref backend-cpu; do
    status "$1" "$aothost" run inference.yaml --model "$2.ir" --inputs in.safetensors --outputs out.safetensors --set vars.backend=$backend
    [ -z "${5:-}" ] || says "$5"
  done
}
call 0 range 2x4 4
call 0 range 8x4 4
call 2 range 9x4 4 'input 0 \(x\): expected f32\[s, 4\], got f32\[9, 4\]: dimension 0 makes size s = 9, but the model was exported for s in 2\.\.8'
call 2 range 1x4 4 'dimension 0 makes size s = 1, but the model was exported for s in 2\.\.8'
call 2 range 3x5 4 'input 0 \(x\): .* dimension 1: expected 4, got 5'
call 0 equal 5x4 5
call 2 equal 5x4 6 'input 1 \(y\): expected f32\[s\], got f32\[6\]: dimension 0: expected 5, got 6, it is s'
call 0 multiple 12 1
call 2 multiple 13 1 'input 0 \(x\): .* dimension 0 cannot be 13, it is s \* 4'
call 2 multiple 36 1 'dimension 0 makes size s = 9, but the model was exported for s in 2\.\.8'
call 0 twice 4 8
call 2 twice 4 9 'input 1 \(y\): .* dimension 0: expected 8, got 9, it is s \* 2'
call 0 after 4 5
call 2 after 4 4 'input 1 \(y\): .* dimension 0: expected 5, got 4, it is s \+ 1'
call 0 before 4 6
call 2 before 4 7 'input 1 \(y\): .* dimension 0: expected 6, got 7'
call 0 larger 3x5 5
call 0 larger 7x5 7
call 2 larger 7x5 5 'input 1 \(y\): .* dimension 0: expected 7, got 5, it is max\(s, t\)'
call 0 product 3x5 15
call 2 product 3x5 14 'input 1 \(y\): .* dimension 0: expected 15, got 14, it is s \* t'
call 0 rest 5 2
call 2 rest 5 1 'input 1 \(y\): .* dimension 0: expected 2, got 1, it is mod\(s, 3\)'
call 0 guarded 4x4 2
call 2 guarded 5x4 2 'the inputs have sizes for which the model is not valid: .* under the guard s is even \(s = 5\)'
call 0 strided 3x4 3
call 0 expanded 3x4 3
call 0 overlapping 3x4 3
"$edit" "$root/tests/fixtures/scenarios/inner_inplace_act/expected.safetensors" differ.safetensors keep input.0 ones input.1 3
for name in expanded overlapping; do
  status 2 "$aothost" run inference.yaml --model $name.ir --inputs differ.safetensors --outputs out.safetensors
  says 'input 0: the model was exported for a tensor whose elements share addresses'
done
call 2 strided_alike 3x4 3x5 'input 1 \(y\): .* by the strides that the model shares with other inputs its elements share addresses'

# Three sizes of an exported model, every stage once.
region=$root/tests/fixtures/regions/dyn_mlp
for backend in backend-ref backend-cpu; do
  status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$region/train.pt2" --expect "$region/expected.safetensors" \
    --expect "$region/expected.1.safetensors" --expect "$region/expected.2.safetensors" --no-cache --json stages.json --set vars.backend=$backend
  [ "$(grep -c '"unit": "backend-' stages.json)" = 1 ] || complain "$backend: not one compile for three sizes"
  [ "$(grep -c '"file":' stages.json)" = 24 ] || complain "$backend: not all three files were compared"
done
finish
