#!/bin/sh
# aothost export: what is written reads back as the same program (values and gradients against PyTorch's), twice to the same bytes.
. "$(dirname "$0")/lib.sh"

# The exported archive of a model, under the pipeline, agrees with what PyTorch recorded of the model.
agrees() { # PIPELINE ARCHIVE FOLDER
  expects=""
  for e in "$3"/expected*.safetensors; do expects="$expects --expect $e"; done
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
