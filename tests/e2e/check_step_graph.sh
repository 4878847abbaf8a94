#!/bin/sh
# Training by one step graph and by three graphs: the same numbers, bit for bit on backend-ref; on backend-cpu, whose sums across rows go by what
# shares their loop, the same losses. And what cannot be stitched is said.
. "$(dirname "$0")/lib.sh"
cat > p.yaml <<'EOF'
aot: 1
vars: {backend: backend-ref, model: none.pt2}
model: {path: "${model}"}
stages: [{use: functionalize}, {use: rng}, {use: autograd}, {use: partition-mincut}, {use: "${backend}"}]
run:
  train: {steps: 3, lr: 0.01, seed: 4, log-every: 0, data: random, checkpoint: one.st}
EOF
# plain, batch norm's buffers, draws, effects and sizes told by the data, a parameter that the forward writes as well
for model in tests/fixtures/models/gpt_tiny tests/fixtures/models/resnet_tiny tests/models/dropout_vit tests/models/dynamic_mask \
    tests/fixtures/history/shape_of_state_restored; do
  for backend in backend-ref backend-cpu; do
    with="--set vars.model=$root/$model/train.pt2 --set vars.backend=$backend"
    # shellcheck disable=SC2086
    status 0 "$aothost" run p.yaml $with
    says '^stitch '
    says '^memory: one step graph, boundary '
    grep -o 'loss [0-9.]* -> [0-9.]*' out > one.loss
    status 0 "$aothost" run p.yaml $with --set run.train.step=three-graphs --set run.train.checkpoint=three.st
    says '^memory: saved for backward '
    grep -o 'loss [0-9.]* -> [0-9.]*' out > three.loss
    [ -s one.loss ] || complain "no loss is told"
    same one.loss three.loss
    [ $backend = backend-cpu ] || same one.st three.st
  done
done
status 0 "$aothost" run p.yaml --set "vars.model=$models/gpt_tiny/train.pt2" --set vars.backend=backend-cpu --set run.train.optimizer=sgd
says 'copied a step 0 bytes'

# micro steps: a run that is resumed in its middle ends where the whole one does
status 0 "$aothost" run p.yaml --set "vars.model=$models/gpt_tiny/train.pt2" --set run.train.accumulate=2 --set run.train.clip-norm=0.3 --set run.train.steps=4
mv one.st whole.st
status 0 "$aothost" run p.yaml --set "vars.model=$models/gpt_tiny/train.pt2" --set run.train.accumulate=2 --set run.train.clip-norm=0.3 --set run.train.steps=2 --set run.train.checkpoint=half.st
status 0 "$aothost" run p.yaml --set "vars.model=$models/gpt_tiny/train.pt2" --set run.train.accumulate=2 --set run.train.clip-norm=0.3 --set run.train.steps=4 --set run.train.resume=half.st
same one.st whole.st
status 2 "$aothost" run p.yaml --set "vars.model=$models/gpt_tiny/train.pt2" --set run.train.accumulate=2 --set run.train.step=three-graphs
says "require 'step: one-graph'"

# a model that was exported with its backward: two micro steps over the same data are one step
joint=$root/tests/fixtures/regions/joint_mlp
cat > joint.yaml <<EOF
aot: 1
model: {path: $joint/joint.pt2}
stages: [{use: partition-default}, {use: backend-ref}]
run: {train: {steps: 5, lr: 0.05, optimizer: sgd, log-every: 0, data: $joint/expected.safetensors}}
EOF
status 0 "$aothost" run joint.yaml --json one.json
status 0 "$aothost" run joint.yaml --json two.json --set run.train.accumulate=2
for file in one two; do sed -n 's/.*"last_loss": \([0-9.]*\),*/\1/p' $file.json | cut -c1-8 > $file.loss; done
[ -s one.loss ] && same one.loss two.loss

# the program, as text, and back
status 0 "$aothost" opt "$models/mlp/train.pt2" --use functionalize --use autograd --use partition-default --use sgd --use stitch -o step.ir
has step.ir '^graph @step.* step \{'
status 0 "$aothost" opt step.ir -o again.ir
same step.ir again.ir
status 2 "$aothost" opt "$models/mlp/train.pt2" --use functionalize --use autograd --use partition-default --use sgd --use stitch --with loss=7
says 'loss index 7 is out of range; the model has 1 outputs'
status 2 "$aothost" opt "$models/mlp/train.pt2" --use functionalize --use autograd --use partition-default --use sgd --use stitch --with accumulate=0
says 'accumulate'
status 2 "$aothost" opt "$models/mlp/train.pt2" --use functionalize --use autograd --use partition-default --use stitch
says 'no update graph'
finish
