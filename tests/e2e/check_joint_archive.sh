#!/bin/sh
# An archive that holds its backward (loss and gradients are outputs, the tangent of the loss is a 1 built in): it is a joint program,
# begins with the partition, trains, and refuses what only makes sense before the backward is there.
. "$(dirname "$0")/lib.sh"
joint=$root/tests/fixtures/regions/joint_mlp
for partition in partition-default partition-mincut; do
  for backend in backend-ref backend-cpu; do
    status 0 "$aothost" verify "$root/pipelines/joint.yaml" --model "$joint/joint.pt2" --expect "$joint/expected.safetensors" --rtol 1e-5 \
      --set vars.backend=$backend --set vars.partition=$partition
    says "5 of 5 keys agree"
  done
done
status 0 "$aothost" opt "$joint/joint.pt2"
says "^properties imported functional joint"
says "out loss 0"
says "out gradient 3"
status 0 "$aothost" opt "$joint/joint.pt2" --use partition-mincut
sed '/graph @backward/,$!d' out > backward
grep -q "= tangent" backward && complain "the backward takes a tangent"
has backward "aten.full_like.default"
grep -q "aten.addmm" backward && complain "the backward computes the forward again"
# The tangent of the loss can only be 1; and there is nothing left to differentiate.
"$edit" "$joint/expected.safetensors" two.safetensors add tangent.0 1
status 2 "$aothost" verify "$root/pipelines/joint.yaml" --model "$joint/joint.pt2" --expect two.safetensors
says "tangent 0: the model was exported with the gradients of output 0 itself"
status 2 "$aothost" opt "$joint/joint.pt2" --use autograd
says "rejects the program: it is already joint"
says "start with the partition"
status 2 "$aothost" run "$root/pipelines/quickstart.yaml" --model "$joint/joint.pt2"
says "rejects the program: it is already joint"
status 2 "$aothost" verify "$root/pipelines/joint.yaml" --model "$joint/train.pt2" --expect "$joint/expected.safetensors"
says "requires a program that is functional"
# It trains: the loss falls.
cat > train.yaml <<Y
aot: 1
stages: [{use: partition-mincut}, {use: backend-ref}]
run: {train: {steps: 20, data: {safetensors: $joint/expected.safetensors}, optimizer: sgd, lr: 0.5, log-every: 0}}
Y
status 0 "$aothost" run train.yaml --model "$joint/joint.pt2" --json train.json
awk -F'[:,]' '/"first_loss"/ { first = $2 } /"last_loss"/ { last = $2 } END { exit !(last < 0.8 * first) }' train.json ||
  complain "the loss does not fall"
finish
