#!/bin/sh
# bfloat16 and float16 next to short float32 loops, with one, two and four threads: what a declined lowering of halves has
# added is dropped, so that joined loops run before their readers. Memory that nothing wrote is not zero here.
. "$(dirname "$0")/lib.sh"
programs=$root/tests/fixtures/found2/half_declined
export MALLOC_PERTURB_=170
cat > verify.yaml <<'END_OF_FILE'
aot: 1
vars: {threads: 1}
stages:
  - use: functionalize
  - use: autograd
    with: {when-nothing: forward-only}
  - use: partition-mincut
  - use: backend-cpu
    with: {threads: "${threads}"}
END_OF_FILE
cat > train.yaml <<'END_OF_FILE'
aot: 1
vars: {threads: 1, folder: none}
model: {import: pt2, path: "${folder}/train.pt2"}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-cpu, with: {threads: "${threads}"}}]
run:
  train:
    {steps: 4, optimizer: sgd, lr: 0.1, precision: bf16, step: three-graphs, log-every: 1, data: "${folder}/data.safetensors"}
END_OF_FILE
for threads in 1 2 4; do
  for program in "$programs"/*/expected.safetensors; do
    folder=$(dirname "$program")
    status 0 "$aothost" verify verify.yaml --model "$folder/train.pt2" --expect "$program" --set vars.threads=$threads
  done
  status 0 "$aothost" run train.yaml --set vars.threads=$threads --set "vars.folder=$programs/classifier"
  grep -o 'step ./4  loss [^ ]*' out > losses.$threads
  same losses.1 losses.$threads
done
[ "$(wc -l < losses.1)" = 4 ] || complain "no losses of four steps"
finish
