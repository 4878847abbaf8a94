#!/bin/sh
# aothost run --profile on a GPU: steps are timed by events and named; training is what it is without.
. "$(dirname "$0")/lib.sh"
cat > p.yaml <<END
aot: 1
model: {import: pt2, path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: rng}, {use: autograd}, {use: partition-mincut}, {use: backend-cuda}]
run: {device: cuda, train: {steps: 3, data: random, log-every: 1}}
END
losses() { grep -oE '^step [0-9]+/[0-9]+  loss [0-9.]+' out > "$1"; }
status 0 "$aothost" run p.yaml
losses plain
status 0 "$aothost" run p.yaml --profile --json run.json
losses profiled
same plain profiled
says '^profile: [0-9.]+ ms in [0-9]+ steps, mean of 2 runs after a first one'
says ' product +aten\.mm\.default$'
says ' loop +$'
says ' (loop|product) +a[a-z]+\.[a-z_.A-Z]+ +f32\[[0-9, ]+\] +[a-z]' # result and module, of one of the slowest
if command -v python3 > /dev/null; then
  python3 - run.json <<'END' || complain "the JSON's profile"
import json, sys
run = json.load(open(sys.argv[1]))
profile = run["profile"]
assert profile["runs"] == 2 and profile["left_out"] == 1 and all(step["runs"] == 2 and step["kernel"] for step in profile["steps"])
assert abs(sum(step["ms"] for step in profile["steps"]) - profile["ms"]) < 1e-6 * profile["ms"]
assert profile["ms"] > 0
assert 0 < profile["limit_ms"] < profile["ms"] # a double is slower than an H100
products = [step for step in profile["steps"] if step["kernel"] == "product"]
assert products and all(step["bytes"] > 0 and step["flops"] > 0 and "[" in step["result"] for step in products)
END
fi
finish
