#!/bin/sh
# A training in bfloat16 of one model of each family that is measured on GPUs (bench/torch), on backend-cuda's double: nothing
# runs on the host, and the losses are backend-cpu's.
. "$(dirname "$0")/lib.sh"
cat > p.yaml <<END
aot: 1
vars: {backend: backend-cpu}
model: {path: model.pt2}
stages: [{use: functionalize}, {use: rng}, {use: autograd}, {use: partition-mincut}, {use: "\${backend}"}]
run:
  train: {steps: 3, lr: 1e-3, optimizer: adamw, log-every: 1, precision: bf16, loss-scale: none, data: random}
END
losses() { sed -n 's/^step.*loss \([0-9.]*\) .*/\1/p' out | tr '\n' ' '; }
for model in "$models/gpt_tiny" "$models/resnet_tiny" "$models/vit_tiny" "$root"/tests/families/*/; do
  status 0 "$aothost" run p.yaml --model "$model/train.pt2"
  expected=$(losses)
  status 0 "$aothost" run p.yaml --model "$model/train.pt2" --set vars.backend=backend-cuda --set run.device=cuda --json run.json
  grep -A1 '"host-fallbacks"' run.json | grep -q '"value": 0' || complain "$model: $(grep 'on the host' out)"
  echo "$expected $(losses)" | awk '{ n = NF / 2; for (i = 1; i <= n; i++) { d = $i - $(i + n); if (d < 0) d = -d; if (!(d <= 0.02 * $i)) exit 1 } exit n != 3 }' ||
    complain "$model: losses $(losses), and $expected on backend-cpu"
done
finish
