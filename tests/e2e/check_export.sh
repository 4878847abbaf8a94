#!/bin/sh
# aothost export: what is written reads back as the same program (values and gradients against PyTorch's), twice to the same bytes.
. "$(dirname "$0")/lib.sh"

# The exported archive of a model, under the pipeline, agrees with what PyTorch recorded of the model.
agrees() { # PIPELINE ARCHIVE FOLDER
  expects=""
  for e in $(expectations "$3"); do expects="$expects --expect $e"; done
  tolerance="--rtol 1e-4 --atol 1e-5"
  case "$3" in */half_precision | */autocast_region) tolerance="--rtol 2e-2 --atol 2e-2" ;; esac
  status 0 "$aothost" verify "$root/pipelines/$1.yaml" --model "$2" $expects $tolerance --set vars.backend=backend-ref
}

has_gradients() { head -c 16384 "$1" | grep -qa '"tangent\.'; }

for folder in "$root"/tests/fixtures/models/* "$root"/tests/fixtures/scenarios/* "$root"/tests/fixtures/regions/*; do
  for archive in "$folder/train.pt2" "$folder/core.pt2"; do
    [ -f "$archive" ] || continue
    case "$archive" in */mut_metadata_t/*) continue ;; esac # refused, see check_export_rules.sh
    status 0 "$aothost" export "$archive" -o out.pt2
    cp out.pt2 first.pt2
    pipeline=verify
    has_gradients "$folder/expected.safetensors" || pipeline=inference
    agrees $pipeline out.pt2 "$folder"
    status 0 "$aothost" export "$archive" -o out.pt2
    same first.pt2 out.pt2
  done
done

# The joint program: gradients of the loss, the tangent of 1 built in.
for folder in "$root"/tests/fixtures/models/* "$root/tests/fixtures/regions/joint_mlp"; do
  status 0 "$aothost" export "$folder/train.pt2" --joint -o joint.pt2
  agrees joint joint.pt2 "$folder"
  status 0 "$aothost" export joint.pt2 --joint -o again.pt2
  agrees joint again.pt2 "$folder"
done
status 0 "$aothost" export "$root/tests/fixtures/regions/joint_mlp/joint.pt2" --joint -o joint.pt2
agrees joint joint.pt2 "$root/tests/fixtures/regions/joint_mlp"

# Text: what is exported prints to itself, and stages may be given by a pipeline or one by one.
mlp=$models/mlp/train.pt2
status 0 "$aothost" export "$mlp" --joint -o joint.ir
status 0 "$aothost" export joint.ir --joint -o again.ir
same joint.ir again.ir
has joint.ir "out loss 0"
status 0 "$aothost" export "$mlp" -o functional.ir
status 0 "$aothost" export "$mlp" --use functionalize -o other.ir
same functional.ir other.ir
status 0 "$aothost" export "$mlp" --pipeline "$root/pipelines/verify.yaml" -o other.ir
same functional.ir other.ir
status 0 "$aothost" export "$mlp" --pipeline "$root/pipelines/verify.yaml" --joint -o other.ir
same joint.ir other.ir
"$aothost" export "$mlp" > other.ir
same functional.ir other.ir

# Symbolic sizes: symbols named as PyTorch names them, nodes for the sizes in arguments; a number where PyTorch wants a tensor becomes
# one; leaves without a name or data; a buffer that is not persistent; a value that is new value and output.
cat > sizes.ir <<'P'
aot 1
properties imported functional
symbol batch in [1, 64] hint 4
symbol s1 in [2, inf] hint 6
leaf 0 parameter "w" : f32[8] grad
leaf 1 constant : f32[2] data "0000803f00000040"
leaf 2 buffer "n" : i64[] data "0300000000000000"
leaf 3 buffer "m" : i64[] data "0300000000000000"
leaf 4 user_input 0 "x" : f32[batch, s1, 8]
rule copy_back 2
rule copy_back 3
graph @forward forward {
  in %w = parameter 0 : f32[8] grad
  in %c = constant 1 : f32[2]
  in %n = buffer 2 : i64[]
  in %m = buffer 3 : i64[]
  in %x = user_input 4 : f32[batch, s1, 8]
  %a = aten.mul.Tensor %x, %w
  %flat : f32[batch * s1 * 4, 2] = aten.view.default %a, [batch * s1 * 4, 2]
  %y = aten.mul.Tensor %flat, %c
  %mask : bool[batch, s1, 8] = aten.gt.Scalar %x, 0.0
  %chosen = aten.where.self %mask, %x, 0.5
  %next = aten.add.Tensor %n, 1
  out user_output 0 = %y
  out user_output 1 = %chosen
  out user_output 2 = %next
  out user_output 3 = none
  out update 2 = %next
  out update 3 = %next
}
P
status 0 "$aothost" export sizes.ir -o sizes.pt2
says "1 of the program's tensors have no data"
status 0 "$aothost" opt sizes.pt2
says "symbol s0 in .1, 64. hint 4"
says "f32.s0 \\* s1 \\* 4, 2. = aten.view.default"
says "= aten.where.self %mask, %x, %scalar_tensor"
says "out update [0-9]+ \"alias\" = "
says "out user_output 3 = none"
for word in "'s0', positive=True" sym_size_int _operator.mul lifted_tensor_0 '"persistent": false'; do
  grep -qa -- "$word" sizes.pt2 || complain "the archive lacks $word"
done

# Weights start at multiples of 64, names of parameters and buffers stand in the configs, and --json tells the signature.
status 0 "$aothost" export "$models/resnet_tiny/train.pt2" -o resnet.pt2 --json resnet.json
has resnet.json '"name": "m.n.running_mean"'
has resnet.json '"role": "update"'
status 0 "$aothost" export "$mlp" --joint -o mlp.pt2 --json mlp.json
has mlp.json '"role": "gradient"'
grep -qa '"gradient_to_parameter"' mlp.pt2 || complain "the archive names no gradient"
grep -qa '"loss_output"' mlp.pt2 || complain "the archive names no loss"
grep -qa 'torch.ops.aot\.' mlp.pt2 && complain "an operator that PyTorch does not have is left"

# A file appears whole or not at all; a suffix that nobody writes is told with those that are known.
status 2 "$aothost" export "$mlp" -o no/such/folder/out.pt2
status 2 "$aothost" export "$mlp" -o out.onnx
says "no format is known for 'out.onnx'; by its suffix: .ir \(text\), .pt2"
[ ! -e out.onnx ] || complain "out.onnx was made"
status 0 "$aothost" export --help
says "torch.export.load"
finish
