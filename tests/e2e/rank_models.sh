#!/bin/sh
# rank_models.sh AOTHOST LOCAL_RANKS ROOT [MODEL..]: 20 steps of several ranks, in every mode, have the losses of one rank that takes all their
# rows; what a rank holds of parameters and states is counted. Without models: one way through four small ones, for every run of the
# tests; with them (folders below ROOT): 2, 3 and 4 ranks on both backends in every mode, and 4 as a mesh, for the night.
. "$(dirname "$0")/lib.sh"
. "$root/tests/e2e/ranks_lib.sh"
shift 3
cat > train.yaml <<'END'
aot: 1
vars: {backend: backend-ref, partition: partition-mincut}
model: {path: none}
stages: [{use: functionalize}, {use: rng}, {use: fsdp, with: {buffers: local}}, {use: autograd}, {use: "${partition}"}, {use: "${backend}"}]
run:
  train: {steps: 20, optimizer: adamw, lr: 0.001, seed: 4, log-every: 1}
END

# compare MODEL BACKEND N MODE..
compare() {
  model=$1 backend=$2 n=$3; shift 3
  set_model="--set model.path=$root/$model/train.pt2 --set vars.backend=backend-$backend"
  alone "$n" $set_model
  for mode in "$@"; do
    together "$n" $set_model --set stages.fsdp.mode="$mode"
    equal "$n" "$model, $backend, $n ranks, $mode"
  done
}
# compare_mesh MODEL BACKEND: 4 ranks as 2 rows of 2
compare_mesh() {
  model=$1
  alone 4 --set model.path="$root/$model/train.pt2" --set vars.backend=backend-"$2"
  together 4 --set model.path="$root/$model/train.pt2" --set vars.backend=backend-"$2" --set stages.fsdp.mode=hybrid --set stages.fsdp.columns=2
  equal 4 "$model, $2, 4 ranks, hybrid"
}
# held_by MODEL N: with everything in parts a rank holds ceil(rows / N) rows of each parameter and of Adam's two moments, and a count of steps.
held_by() {
  model=$1 n=$2
  status 0 "$aothost" inspect "$root/$model/train.pt2"
  wanted=$(awk -v n="$n" '/ parameter +[0-9]+ +f32\[/ {
      split(substr($0, index($0, "[") + 1), text, "]"); d = split(text[1], size, ", "); rows = d ? int((size[1] + n - 1) / n) : 1
      for (i = 2; i <= d; i++) rows *= size[i]
      bytes += 3 * 4 * rows
    } END { print bytes + 8 }' out)
  together "$n" --set model.path="$root/$model/train.pt2" --set stages.fsdp.replicate-under=0 --set run.train.steps=1
  [ "$(sort -u held)" = "$wanted" ] || complain "$model: of $n ranks one holds $(sort -u held) bytes, not $wanted"
}

if [ $# = 0 ]; then
  for model in tests/fixtures/models/gpt_tiny tests/fixtures/models/resnet_tiny; do compare $model ref 4 shard; done
  for model in tests/models/dropout_vit tests/models/dropout_bert; do compare $model ref 4 shard-grad; done
  held_by tests/fixtures/models/vit_tiny 3
  held_by tests/fixtures/models/gpt_tiny 4 # its tied embedding once
fi
for model in "$@"; do
  for n in 2 3 4; do
    for backend in ref cpu; do compare "$model" "$backend" "$n" shard shard-grad replicate; done
  done
  for backend in ref cpu; do compare_mesh "$model" "$backend"; done
done
finish
