#!/bin/sh
# aothost run --profile: every step of training is timed and named, sums are the sums of steps; a backend that cannot tell says so.
set -u
. "$(dirname "$0")/lib.sh"

pipeline() { # BACKEND
  cat > p.yaml <<END
aot: 1
model: {import: pt2, path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: rng}, {use: autograd}, {use: partition-mincut}, {use: $1}]
run: {train: {steps: 3, data: random, log-every: 0}}
END
}

pipeline backend-cpu
status 0 "$aothost" run p.yaml --profile --json run.json
says '^profile: [0-9.]+ ms in [0-9]+ steps, mean of 2 runs after a first one'
says ' product +aten\.mm\.default$'
says ' loop +$'
says 'slowest steps'
says ' product +aten\.(mm|linear)\.default +f32\[[0-9, ]+\] +[a-z]' # result and module
if command -v python3 > /dev/null; then
  python3 - run.json <<'END' || complain "the JSON's profile"
import json, sys
run = json.load(open(sys.argv[1]))
profile = run["profile"]
assert profile["runs"] == 2 and profile["left_out"] == 1 and all(step["runs"] == 2 and step["kernel"] for step in profile["steps"])
assert len(profile["steps"]) == run["memory"]["kernels"], (len(profile["steps"]), run["memory"]["kernels"])
assert abs(sum(step["ms"] for step in profile["steps"]) - profile["ms"]) < 1e-6 * profile["ms"]
assert profile["ms"] <= run["train"]["seconds"] * 1e3
products = [step for step in profile["steps"] if step["kernel"] == "product"]
assert products and all(step["bytes"] > 0 and step["flops"] > 0 and "[" in step["result"] for step in products)
END
fi

status 0 "$aothost" run p.yaml --json run.json
grep -q '"profile"' run.json && complain "a profile that nobody asked for"
status 0 "$aothost" run p.yaml --profile # what was compiled before has names, too
says ' product +aten\.mm\.default$'

pipeline backend-ref
status 2 "$aothost" run p.yaml --profile
says 'backend backend-ref does not tell how long its steps take \(aot\.profile/1\)'
finish
