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
# a page, and the last run as a lane of the trace
status 0 "$aothost" run p.yaml --profile page.html --trace trace.json --json run.json
says '^profile: '
grep -qE 'src=|href=|@import|url\(' page.html && complain "the page wants other files"
if command -v python3 > /dev/null; then
  python3 - <<'END' || complain "the page or the trace"
import json, xml.dom.minidom as dom
page = dom.parse("page.html")
heads = [h.firstChild.data for h in page.getElementsByTagName("h2")]
assert heads == ["The last run", "By kernel and operator", "By module", "Slowest steps"], heads
steps = json.load(open("run.json"))["profile"]["steps"]
drawn = [e for e in page.getElementsByTagName("path") if e.getAttribute("class").startswith("am-a")]
assert len(drawn) == len(steps), (len(drawn), len(steps))
assert len(page.getElementsByTagName("table")[2].getElementsByTagName("tr")) == len(steps) + 1
events = json.load(open("trace.json"))["traceEvents"]
lanes = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
assert lanes == {1: "host", 2: "device, last run"}, lanes
device = [e for e in events if e["ph"] == "X" and e["tid"] == 2]
assert len(device) == len(steps) and all(e["dur"] > 0 for e in device)
spans = [e for e in events if e["name"] == "step"]
assert all(spans[-1]["ts"] <= e["ts"] <= spans[-1]["ts"] + spans[-1]["dur"] for e in device)
END
fi
status 2 "$aothost" run p.yaml --profile none/page.html
says 'the profile cannot be written to none'

status 0 "$aothost" run p.yaml --profile # what was compiled before has names, too
says ' product +aten\.mm\.default$'

pipeline backend-ref
status 2 "$aothost" run p.yaml --profile
says 'backend backend-ref does not tell how long its steps take \(aot\.profile/1\)'
finish
