#!/bin/sh
# Tensors, tokens, checkpoints, expectations and pipelines that do not fit: status 2 (a comparison: 1), what and where; nothing
# written.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bad.sh"
m=$models/mlp; g=$models/gpt_tiny
call() { "$aothost" run "$root/pipelines/inference.yaml" --outputs o.st "$@"; }
verify() { "$aothost" verify "$root/pipelines/verify.yaml" --model "$m/train.pt2" --expect "$@"; }
"$edit" "$m/expected.safetensors" in.st keep input.
"$edit" "$g/expected.safetensors" gpt.st keep input.

# ---- inputs of a call ----
"$edit" in.st few.st drop input.1
"$edit" in.st swapped.st rename input.0 t rename input.1 input.0 rename t input.1
"$edit" "$m/expected.safetensors" shape.st rename grad.m.0.weight input.0.other drop input.0 rename input.0.other input.0 keep input.
head -c 300 in.st > cut.st; head -c 5 in.st > five.st; : > empty.st
{ head -c 8 in.st; printf '{"input.0":nothing'; tail -c 600 in.st; } > json.st
mlp() { call --model "$m/train.pt2" --inputs "$@"; }
refuse 2 'missing tensor "input.1"; the model has 2 inputs' '--inputs:1:1' mlp few.st
refuse 2 'expected f32[8, 16], got i64[8]: the dtype differs' 'input 0 (x)' mlp swapped.st
refuse 2 'expected f32[8, 16], got f32[32, 16]' 'input 0 (x)' mlp shape.st
refuse 2 'lie outside the' 'cut.st: error: tensor "input.' mlp cut.st
refuse 2 'the file has 5 bytes' 'five.st' mlp five.st
refuse 2 'the file has 0 bytes' 'empty.st' mlp empty.st
refuse 2 'the header is no valid JSON' 'json.st' mlp json.st
refuse 2 'No such file or directory' 'cannot open missing.st' mlp missing.st
refuse 2 'it is a directory' 'cannot read .' mlp .
# numbers that no table has: found while it runs, by either backend, with the operator and the number
"$edit" gpt.st high.st add input.0 100000; "$edit" gpt.st low.st add input.0 -100000; "$edit" in.st class.st add input.1 100
for backend in ref cpu; do
  b="--set vars.backend=backend-$backend"
  for sign in high low; do
    # shellcheck disable=SC2086
    refuse 2 'aten.embedding.default' 'from module wte, node embedding' call $b --model "$g/train.pt2" --inputs $sign.st
    says 'index (100015|-99985)'; says "in stage backend-$backend"
  done
  # shellcheck disable=SC2086
  refuse 2 'aten.cross_entropy_loss.default' 'from node cross_entropy_loss' call $b --model "$m/train.pt2" --inputs class.st
  says 'target 1[0-9][0-9]'
done

# ---- expectations ----
e=$m/expected.safetensors
"$edit" "$e" unknown.st rename output.0 banana.0
"$edit" "$e" other.st rename grad.m.0.weight t rename grad.m.2.weight grad.m.0.weight rename t grad.m.2.weight
"$edit" "$e" type.st rename grad.m.0.bias t rename input.1 grad.m.0.bias rename t input.1
refuse 1 'missing' 'banana.0' verify unknown.st
refuse 1 'shape: got f32[32, 16]' 'grad.m.0.weight' verify other.st
refuse 2 'expected i64[8], got f32[32]' 'input 1 (y)' verify type.st
head -c 8900 "$e" > cut.st; refuse 2 'lie outside the' 'cut.st: error: tensor' verify cut.st
refuse 2 'No such file or directory' 'missing.st' verify missing.st
refuse 2 'verify needs an expectation file' '--expect' "$aothost" verify "$root/pipelines/verify.yaml" --model "$m/train.pt2"
refuse 2 '--rtol takes a number of at least 0' '"nan"' verify "$e" --rtol nan

# ---- training: tokens, checkpoints, numbers ----
cat > train.yaml <<'YAML'
aot: 1
vars: {backend: backend-cpu, data: random}
stages:
  - use: functionalize
  - use: autograd
  - use: partition-mincut
  - use: ${backend}
run:
  train: {steps: 3, log-every: 0, checkpoint: ck.st}
YAML
train() { name=$1; shift; "$aothost" run train.yaml --model "$models/$name/train.pt2" "$@"; }
tokens() { train gpt_tiny --set "run.train.data={tokens: $1}"; }
printf abc > three.txt; : > empty.txt; awk 'BEGIN {for (i = 0; i < 999; i++) printf "~"}' > tilde.txt
refuse 2 'three.txt has 3 tokens; a window of 16 and the token after it need 17' 'run.train.data:1:1' tokens three.txt
refuse 2 'empty.txt has 0 tokens' 'run.train.data:1:1' tokens empty.txt
refuse 2 'three.txt has 3 bytes, which is no whole number of u16 tokens' 'run.train.data' tokens 'three.txt, dtype: u16'
refuse 2 'No such file or directory' 'cannot open missing.txt' tokens missing.txt
refuse 2 'batch is 7, but the model was exported for 2' 'run.train.data:1:1' tokens 'tilde.txt, batch: 7'
refuse 2 'token input 9 is out of range; the model has 2 inputs' 'run.train.data:1:1' tokens 'tilde.txt, inputs: [0, 9]'
refuse 2 'which must be an i64 or i32 tensor' 'tokens go to input 0' train mlp --set 'run.train.data={tokens: tilde.txt}'
for backend in ref cpu; do # no row 126 in a table of 96
  refuse 2 'index 126' 'node embedding' train gpt_tiny --set vars.backend=backend-$backend --set 'run.train.data={tokens: tilde.txt}'
done
refuse 1 'loss is NaN at step' 'train.yaml:9:10' train mlp --set run.train.lr=1e6 --set run.train.steps=50
refuse 2 'loss index 9 is out of range; the model has 1 outputs' 'run.train.loss:1:1' train mlp --set run.train.loss=9

status 0 train mlp; cp ck.st good.st
refuse 2 "the checkpoint lacks \"param.wte.weight\"" 'good.st: error' train gpt_tiny --set run.train.resume=good.st
refuse 2 'made with optimizer adamw, the run uses sgd' 'good.st: error' train mlp --set run.train.resume=good.st --set run.train.optimizer=sgd
refuse 2 'this is no checkpoint of aothost' 'in.st: error' train mlp --set run.train.resume=in.st
head -c -1000 good.st > half.st; refuse 2 'lie outside the' 'half.st: error: tensor' train mlp --set run.train.resume=half.st
refuse 2 'No such file or directory' 'run.train.resume:1:1' train mlp --set run.train.resume=missing.st
"$edit" good.st shape.st rename param.m.0.weight t rename param.m.2.weight param.m.0.weight rename t param.m.2.weight
refuse 2 'this is no checkpoint' 'shape.st' train mlp --set run.train.resume=shape.st # edit_tensors drops the metadata
same ck.st good.st

# ---- pipelines, as a user mistypes them ----
yaml() { sed "$1" train.yaml > bad.yaml; }
bad() { "$aothost" run bad.yaml --model "$m/train.pt2"; }
yaml 's/steps: 3,/steps: [3,/';               refuse 2 'invalid YAML' 'bad.yaml:9:' bad
yaml 's/^run:/rum:/';                         refuse 2 "a pipeline has no key 'rum'; did you mean 'run'?" 'bad.yaml:8:1' bad
yaml 's/use: autograd/use: autogard/';        refuse 2 "unknown unit 'autogard'; did you mean 'autograd'?" 'bad.yaml:5:10' bad
yaml 's/mincut/mincut, with: {distance-base: far}/; s/- use: part\(.*\)/- {use: part\1}/'
refuse 2 "distance-base" 'bad.yaml:6:' bad
yaml 's/mincut/mincut, with: {distance-base: 99}/; s/- use: part\(.*\)/- {use: part\1}/'
refuse 2 "from 1 to 2" 'bad.yaml:6:' bad
yaml 's/mincut/mincut, with: {memory-budget: 1}/; s/- use: part\(.*\)/- {use: part\1}/'
refuse 2 "partition-mincut has no option 'memory-budget'" 'bad.yaml:6:' bad
yaml '/use: autograd/d';                      refuse 2 'requires' 'bad.yaml:5:10' bad # nobody made the program joint
yaml 's/use: functionalize/use: backend-ref/'; refuse 2 'backend' 'bad.yaml:4:10' bad
refuse 2 "train has no key 'stepz'; did you mean 'steps'?" '--set run.train.stepz:1:1' train mlp --set run.train.stepz=4
refuse 2 "the pipeline has no stage 'nope'" '--set:1:1' train mlp --set stages.nope.x=4
refuse 2 "unknown variable 'backendd'; did you mean 'backend'?" '--set vars.backendd:1:1' train mlp --set vars.backendd=x
refuse 2 'expected PATH=VALUE' 'banana' train mlp --set banana
refuse 2 'has no such stage' '--dump-after nope' train mlp --dump-after nope
refuse 2 'there is no pipeline' '--set x=1' "$aothost" opt "$m/train.pt2" --set x=1
refuse 2 'no --use names such a stage' '--dump-after nope' "$aothost" opt "$m/train.pt2" --use functionalize --dump-after nope -o o.ir
refuse 2 'it is a directory' "cannot read '.'" "$aothost" run .
refuse 2 'the file is empty' 'empty.st:1:1' "$aothost" check empty.st
finish
