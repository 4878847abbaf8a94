#!/bin/sh
# aothost inspect --memory: what backends tell beforehand is what runs measure; text and JSON as recorded; pictures; junk.
set -u
. "$(dirname "$0")/lib.sh"
here=$root/tests/e2e/memory
cp "$here/small.ir" .

python() { command -v python3 > /dev/null || return 0; python3 - "$@" || complain "python: $*"; }

# ---- text and JSON on a small program
status 0 "$aothost" inspect small.ir --memory --use backend-ref --budget 8KiB --top 5
same out "$here/small.txt"
status 0 "$aothost" inspect small.ir --memory --use backend-ref --json - --top 3
same out "$here/small.json"

# ---- every model: the arena that is planned is the one that a run has; backend-ref's rows peak where a run does
pipeline() { # MODEL PARTITION BACKEND TRAIN
  cat > p.yaml <<END
aot: 1
model: {import: pt2, path: $models/$1/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: $2}, {use: $3}]
run: {inputs: random$4}
END
}
for model in mlp gpt_tiny resnet_tiny vit_tiny bert_tiny; do
  for partition in partition-default partition-mincut; do
    for backend in backend-cpu backend-ref; do
      pipeline $model $partition $backend ""
      status 0 "$aothost" inspect p.yaml --memory --json plan.json -q
      status 0 "$aothost" run p.yaml --grads --json run.json
      python $backend <<'END'
import json, sys
plan, run = json.load(open("plan.json"))["plans"][0], json.load(open("run.json"))
t = plan["timeline"]
own = [a + b for a, b in zip(t["temporary"], t["scratch"])]
run = run.get("memory", run)
assert plan["unit"] == sys.argv[1] and len(own) == plan["steps"] and plan["forward_steps"] < plan["steps"]
assert max(own) == run["peak_intermediate_bytes"], (max(own), run)
assert plan["arena_bytes"] == run["arena_bytes"], (plan["arena_bytes"], run)
assert max(t["alive"]) == plan["alive_bytes"] == t["alive"][plan["peak_step"]] <= plan["peak_bytes"]
if plan["arena_bytes"]: # what is held is what the host and the backend allocate
    assert plan["peak_bytes"] == run["boundary_bytes"] + run["arena_bytes"], (plan["peak_bytes"], run)
assert t["saved"][-1] == max(t["saved"]) > 0
END
    done
  done
done

# ---- with an optimizer its graph has a part in the arena, and none on the axis
pipeline mlp partition-mincut backend-cpu ", train: {steps: 1, step: three-graphs, optimizer: adamw, data: random}"
status 0 "$aothost" inspect p.yaml --memory --json plan.json -q
status 0 "$aothost" run p.yaml --json run.json
python <<'END'
import json
plan, run = json.load(open("plan.json"))["plans"][0], json.load(open("run.json"))
assert plan["arena_bytes"] == run.get("memory", run)["arena_bytes"]
END

# ---- one graph: its arena is the run's, saved values and gradients lie in it, updates stand between steps of the backward
for model in mlp gpt_tiny resnet_tiny; do
  for more in "" ", accumulate: 2" ", clip-norm: 0.5"; do
    pipeline $model partition-mincut backend-cpu ", train: {steps: 2, data: random, log-every: 0$more}"
    status 0 "$aothost" inspect p.yaml --memory --simulated --unit backend-ref --json plan.json --plot p.svg
    says "memory of a step in one graph, as backend-cpu"
    says "; update, [0-9]+ \(u\)"
    has p.svg 'class="am-update"'
    status 0 "$aothost" run p.yaml --json run.json
    python "$more" <<'END'
import json, sys
run = json.load(open("run.json"))
run = run.get("memory", run)
for plan in json.load(open("plan.json"))["plans"]:
    t = plan["timeline"]
    assert plan["step_graph"] and plan["forward_steps"] + plan["update_steps"] < plan["steps"] == len(t["part"])
    assert t["part"].count("update") == plan["update_steps"] > 0
    if plan["unit"] == "backend-cpu": # backend-ref computes all new values before it writes one
        assert 4 * t["saved"][-1] < max(t["saved"]), "saved values outlive the backward"
        assert plan["arena_bytes"] == run["arena_bytes"] and plan["peak_bytes"] == run["boundary_bytes"] + run["arena_bytes"]
        part = t["part"]
        mixed = part.index("update") < max(i for i, p in enumerate(part) if p == "backward")
        # those that run as one wait for each other where that takes no more memory, as with sums of gradients
        assert mixed or sys.argv[1], "updates wait for the end of the backward"
END
  done
done
pipeline mlp partition-mincut backend-cpu ", train: {steps: 1, step: three-graphs, data: random}"
status 0 "$aothost" inspect p.yaml --memory
says "memory of a step, as backend-cpu"

# ---- units side by side; budgets
pipeline gpt_tiny partition-mincut backend-cpu ""
status 0 "$aothost" inspect p.yaml --memory --unit backend-ref --top 2
says "as backend-cpu tells it"; says "as backend-ref tells it"; says "forward, [0-9]+ steps +\| backward"; says "transformer|blocks|h\.0"
status 1 "$aothost" inspect p.yaml --memory --budget 1KiB; says "exceeded by"
status 0 "$aothost" inspect p.yaml --memory --budget 1GiB; says "holds, .* to spare"
status 0 "$aothost" inspect p.yaml --memory --model "$models/mlp/train.pt2"; says "as backend-cpu"

# ---- a budget: the partitioner's simulation, the backend's plan, and the fraction that was asked for
status 0 "$aothost" inspect "$root/pipelines/memory.yaml" --memory --simulated --budget 0.6 --json plan.json -q
python <<'END'
import json
report = json.load(open("plan.json"))
planned, simulated = report["plans"]
assert (planned["unit"], simulated["unit"]) == ("backend-cpu", "partition-mincut")
# what is held of a simulation of the divided program may be a gap larger than what the stage reached when it divided it
assert planned["peak_bytes"] <= report["budget_bytes"] and simulated["alive_bytes"] <= report["budget_bytes"]
assert planned["peak_bytes"] <= simulated["peak_bytes"]
END
status 1 "$aothost" inspect "$root/pipelines/memory.yaml" --memory --budget 0.4 -q

# ---- pictures: well formed, with budget line and names, nothing from elsewhere
status 0 "$aothost" inspect small.ir --memory --use backend-cpu --with threads=1 --budget 8KiB --plot s.svg
status 0 "$aothost" inspect p.yaml --memory --unit backend-ref --budget 1GiB --plot p.html -q
has s.svg 'class="am-budget"'; has s.svg 'budget: 8.0 KiB'; has s.svg 'held: '; has s.svg '%dw  f32\[32, 16\]'
has s.svg 'block.&lt;&amp;&quot;tanh&#39;&gt;'; has s.svg 'prefers-color-scheme:dark'; has s.svg 'am-split'; has s.svg '>steps<'
has p.html '<table'; has p.html 'aten\.'; has p.html 'mousemove'; has p.html 'backend-ref'; has p.html 'far above'
[ "$(grep -c 'https\?://' p.html)" = "$(grep -c 'http://www.w3.org/2000/svg' p.html)" ] || complain "the page names other places"
python <<'END'
import xml.etree.ElementTree as E
E.parse("s.svg")
page = open("p.html").read()
E.fromstring(page[page.index("<svg"):page.index("</svg>") + 6])
E.fromstring("<a>" + page[page.index("<h2>"):page.index("<div id=")] + "</a>")
END

# ---- what cannot be
junk() { sentence=$1; shift; status 2 "$aothost" inspect "$@"; says "$sentence"; }
for budget in -1 0 abc 1.5x "" 1e400; do junk "expected bytes \(64MiB\) or a fraction" small.ir --memory --use backend-ref --budget "$budget"; done
junk "no stage of this run reports that" small.ir --memory --use backend-ref --budget 0.5
for top in -1 x "" 99999999999; do junk "expected a number from 0" small.ir --memory --use backend-ref --top "$top"; done
junk "must end in .svg or .html" small.ir --memory --use backend-ref --plot s.png
junk "No such file or directory|cannot" small.ir --memory --use backend-ref --plot none/s.svg
cat > data.yaml <<END
aot: 1
model: {import: pt2, path: $root/tests/models/dynamic_mask/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-ref}]
END
status 2 "$aothost" inspect data.yaml --memory; says "depends on the data, so that memory cannot be told"
junk "has no backend that could be asked" small.ir --memory
junk "has no partition stage" small.ir --memory --use backend-ref --simulated
junk "does not tell what memory" small.ir --memory --unit partition-default
junk "no unit 'backend-rf'; did you mean|unknown unit 'backend-rf'" small.ir --memory --unit backend-rf
junk "is not allowed here" small.ir --memory --unit autograd
junk "a pipeline has its stages" p.yaml --memory --use backend-ref
junk "only a pipeline takes it" small.ir --memory --use backend-ref --model m.pt2
for flag in "--top 3" "--budget 1MiB" "--plot s.svg" "--simulated" "--unit backend-ref" "--use backend-ref"; do junk "belongs to --memory" small.ir $flag; done
junk "partition it first|requires a program that is" "$models/mlp/train.pt2" --memory --use functionalize --use autograd --use backend-ref
finish
