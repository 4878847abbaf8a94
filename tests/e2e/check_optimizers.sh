#!/bin/sh
# Thirty steps of each optimizer on each backend end at the loss that eager PyTorch 2.11 ends at.
. "$(dirname "$0")/lib.sh"
m=$models/mlp
one() { # LOSS OPTIMIZER OPTIONS STEPS FURTHER
  for backend in backend-ref backend-cpu; do
    cat > train.yaml <<EOF
aot: 1
model: {path: $m/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: $backend}]
run: {train: {steps: ${4:-30}, lr: 0.05, optimizer: $2, optimizer-with: {$3}, data: $m/expected.safetensors${5:+, $5}}}
EOF
    status 0 "$aothost" run train.yaml --json run.json
    got=$(sed -n 's/.*"last_loss": \([0-9.e-]*\),*/\1/p' run.json)
    awk -v a="$got" -v b="$1" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && d <= 1e-5 * b) }' ||
      complain "$2 {$3} on $backend ends at $got, PyTorch at $1"
  done
}
one 1.495214819908142   sgd   ''
one 0.07922255247831345 sgd   'momentum: 0.9, dampening: 0.1, weight-decay: 0.01'
one 0.03403085097670555 sgd   'momentum: 0.9, nesterov: true'
one 4.420226097106934   sgd   'maximize: true'
one 0.25639912486076355 adam  'weight-decay: 0.1, amsgrad: true'
one 86.53533935546875   adamw 'amsgrad: true, maximize: true'
# clipped and accumulated as torch.nn.utils.clip_grad_norm_ and backward of loss / k do (optimizers.py)
one 1.7167809009552002 sgd '' 30 'clip-norm: 0.5'
one 1.495214819908142 sgd '' 30 'accumulate: 2'
one 0.3101312890648842 adamw '' 4 'accumulate: 3, clip-norm: 0.1'
says 'copied a step 0 bytes'
m=$root/tests/models/fno_1d # complex parameters
one 0.9385905265808105 sgd   'momentum: 0.9, weight-decay: 0.01'
one 0.17400409281253815 adamw 'amsgrad: true'
sed -i 's/optimizer: adamw/optimizer: sgd/; s/optimizer-with: {[^}]*}/optimizer-with: {nesterov: true}/' train.yaml
status 2 "$aothost" run train.yaml
says 'nesterov needs a momentum'
finish
