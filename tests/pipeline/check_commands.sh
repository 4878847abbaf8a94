#!/bin/sh
# check_commands.sh AOTHOST PLUGINS HERE: the commands as a user types them: help, --set, include, variables, dumps, traces, JSON.
. "$(dirname "$0")/lib.sh"
P="--plugin-dir $plugins/good"
no() { grep -qF -- "$1" out err && fail "$what: says: $1"; }
json() { python3 -c "import json,sys; d=json.load(open('$1')); assert $2, d" 2>> err || fail "$what: JSON: $2"; }
command -v python3 > /dev/null || json() { [ -s "$1" ] || fail "$what: no JSON"; }

# ---- help and usage
ends 0 --help; for c in run verify check opt inspect plugins schema; do out "  $c "; done
ends 0 --version; out "plugin ABI 1."
for c in run verify check opt inspect plugins schema; do
  ends 0 "$c" --help; out "usage: aothost $c"; out "common options"; out "exit status"
  ends 0 help "$c"; out "usage: aothost $c"
done
ends 2 ; ends 2 chekc; err "did you mean 'check'"
ends 2 check; err "an argument is missing"
ends 0 ops aten.add.Tensor aten.sub.Tensor aten.mul.Tensor aten.div.Tensor aten.exp.default aten.log.default aten.sin.default \
  aten.cos.default aten.tanh.default aten.relu.default
[ "$(grep -c '^aten\.' out)" -eq 10 ] || fail "ops of ten names"
ends 2 check a b; err "one argument too many: b"
ends 2 check a --jsn x; err "did you mean --json"
ends 2 check a --json; err "--json needs a value"
ends 2 check a --quiet=1; err "--quiet takes no value"
ends 2 plugins --plugin-dir nowhere; err "--plugin-dir nowhere: No such file or directory"

# ---- check, --set, include, variables
echo "TOY add mul add mul" > m.toy
mkdir sub
cat > sub/base.yaml <<'END'
# A base: in, a toy model; out, a fused program.
aot: 1
vars: {budget: 0.25, model: m.toy}
model: {import: toy-import, path: "../${model}"}
stages:
  - use: toy-fuse
    with: {how: first, budget: "${budget}"}
run: {inputs: random, train: {steps: 3, optimizer: toy-fuse, lr: 1e-2}}
END
cat > p.yaml <<'END'
aot: 1
include: sub/base.yaml
vars: {label: "a ${budget} b"}
stages:
  - include: sub/base.yaml
  - use: toy-fuse
    as: second
    with: {table: t.txt, limit: 64MiB, label: "${label}"}
  - use: toy-functional
  - use: toy-backend
run: {train: {steps: 5}}
END
ends 0 check p.yaml $P; out "p.yaml: ok, 4 stages, training"
ends 0 check p.yaml $P -q; [ -s out ] && fail "quiet is not"
ends 0 check p.yaml $P -v; cp out resolved.yaml
out "path: $(pwd -P)/sub/../m.toy"; out "steps: 5"; out "lr: 0.01"; out "how: first, budget: 0.25"; out 'label: "a 0.25 b"'; out "limit: 67108864"
out "table: $(pwd -P)/t.txt"; out "schedule: constant"; out "optimizer-with: {how: all"
ends 0 check resolved.yaml $P -v; cmp -s out resolved.yaml || fail "the resolved print does not mean the same"
ends 0 check p.yaml $P -v --set vars.budget=0.75 --set stages.second.rounds=7 --set run.train.steps=9 --set model.path=m.toy --set stages.1.how=all
out "budget: 0.75"; out "rounds: 7"; out "steps: 9"; out "path: $(pwd -P)/m.toy"; out "how: all, budget: 0.75"; out 'label: "a 0.75 b"'
ends 0 check p.yaml $P -v --model other.toy; out "path: $(pwd -P)/other.toy"; err "is not readable"
ends 0 check p.yaml $P -v --set 'vars.label="$$x: 5"'; out 'label: "$$x: 5"'
ends 0 check p.yaml $P -v --set run.train.data=random --set 'run.train.checkpoint={path: c, every: 2}'; out "every: 2"
cat > named.yaml <<'END'
# A stage whose name is a variable is found by the name it stands for.
aot: 1
vars: {pass: toy-fuse}
model: {import: toy-import, path: m.toy}
stages:
  - use: ${pass}
END
ends 0 check named.yaml $P -v --set stages.toy-fuse.rounds=7; out "rounds: 7"
ends 2 check p.yaml $P --set run.train.steps=many; err "--set run.train.steps:1:1: error: 'steps': expected an integer, got a string"
ends 2 check p.yaml $P --set stages.toy-fuse.budget=1; err "ambiguous stage 'toy-fuse' (used 2 times)"
ends 2 check p.yaml $P --set stages.secnd.budget=1; err "no stage 'secnd'; did you mean 'second'"
ends 2 check p.yaml $P --set stages.second.budgt=1; err "did you mean 'budget'"
ends 2 check p.yaml $P --set stages.second.budget=2; err "--set stages.second.budget:1:1"; err "a value from 0 to 1"
ends 2 check p.yaml $P --set stagse.x.y=1; err "did you mean 'stages'"
ends 2 check p.yaml $P --set vars.budgt=1; err "did you mean 'budget'"
ends 2 check p.yaml $P --set run.train.steps; err "expected PATH=VALUE"
ends 2 check p.yaml $P --set run.train.steps.more=1; err "'steps' is an integer, which has no keys"
ends 2 check p.yaml $P --set 'vars.budget=[1'; err "invalid YAML"
ends 2 check p.yaml $P --set vars.budget=7; err "the value comes from this variable"; err "included from here"
printf 'aot: 1\nvars: {pass: toy-fuze}\nstages: [{use: "${pass}"}]\n' > v.yaml
ends 2 check v.yaml $P; err "v.yaml:3:16: error: unknown unit 'toy-fuze'"; err "v.yaml:2:14: note: the value comes from this variable"
ends 2 check nowhere.yaml $P; err "cannot read 'nowhere.yaml': No such file or directory"
ends 2 check sub $P; err "it is a directory"
ends 2 check sub/base.yaml $P --set run.train.lr=no --json r.json
json r.json "d['ok'] is False and d['errors'] == 2 and d['diagnostics'][0]['severity'] == 'error'"
json r.json "any(x['file'] == '--set run.train.lr' and x['line'] == 1 and x['code'] == 'pipeline.type' for x in d['diagnostics'])"
ends 0 check p.yaml $P --json -; cp out r.json; json r.json "d['ok'] and d['pipeline'] == 'p.yaml' and d['diagnostics'] == []"
printf 'aot: 1\nmodel: {path: m.toy}\n' | "$aothost" check /dev/stdin $P > out 2> err || fail "a pipeline from a pipe"
printf '{"aot": 1, "stages": [{"use": "toy-fuse", "with": {"budget": 0.5}}]}' > j.yaml; ends 0 check j.yaml $P

# ---- units that the host adds by itself: rows of pipelines/default-units.yaml, or the pipeline's
printf 'aot: 1\nmodel: {path: m.toy}\nstages: [{use: toy-functional}, {use: toy-backend}]\nrun: {train: {steps: 1}}\n' > d.yaml
ends 2 check d.yaml $P; err "d.yaml:4:14: error: stage adamw requires a program that is partitioned"
echo 'default-units: {optimizer: toy-fuse}' > e.yaml; sed -i '1a include: e.yaml' d.yaml
ends 0 check d.yaml $P -v; out "    optimizer: toy-fuse"; out "  optimizer: toy-fuse"; cp out resolved.yaml
grep -q default-units: resolved.yaml || fail "replaced rows are not printed"
ends 0 check resolved.yaml $P -v; cmp -s out resolved.yaml || fail "replaced rows are lost"
ends 2 check d.yaml $P --set default-units.optimizer=toy-nothing; err "--set default-units.optimizer:1:1: error: unknown unit 'toy-nothing'"
ends 2 check d.yaml $P --set default-units.stpe=x; err "did you mean 'step'"
ends 0 schema $P; cp out r.json; json r.json "'step' in d['properties']['default-units']['properties']"

# ---- opt, dumps, traces, times
ends 0 opt m.toy $P --use toy-fuse --with how=first --with limit=1KiB; out "toy.muladd"; out "toy.mul "
ends 0 opt m.toy $P -o m.ir; ends 0 opt m.ir $P; cmp -s out m.ir || fail "text in is not text out"
ends 0 opt m.ir $P --use toy-fuse --use toy-functional -o n.ir --json r.json
json r.json "[s['unit'] for s in d['stages']] == ['ir', 'toy-fuse', 'toy-functional']"
json r.json "d['stages'][1]['edits'] == 6 and d['stages'][1]['numbers']['fused'] == {'value': 2.0, 'unit': 'nodes'}"
grep -q "^properties imported functional" n.ir || fail "a property is not in the text"
ends 2 opt m.ir $P --with how=all; err "--with belongs to the --use before it"
ends 2 opt m.ir $P --use toy-fuse --with how; err "expected OPTION=VALUE"
ends 2 opt m.ir $P --use toy-fuse --with hwo=all --use toy-nothing; err "did you mean 'how'"; err "unknown unit 'toy-nothing'"
ends 2 opt m.ir $P --use toy-joint; err "requires a program that is functional"; err "'functional' is provided by toy-functional"
ends 2 opt nowhere.ir $P; err "nowhere.ir"
ends 2 opt p.yaml $P; err "unrecognised model format: p.yaml"
ends 0 opt m.ir $P --use toy-fuse --dump-after toy-fuse; out "; after toy-fuse"
ends 0 opt m.ir $P --use toy-fuse --use toy-functional --dump-dir dumps -o n.ir --time --trace t.json
[ -f dumps/01.toy-fuse.ir ] && [ -f dumps/02.toy-functional.ir ] || fail "no dumps"
ends 0 opt dumps/02.toy-functional.ir $P --use toy-functional
ends 0 opt m.ir $P --use toy-fuse -o n.ir --time --trace t.json; err "fused: 2 nodes"; err "total"
json t.json "[e['name'] for e in d['traceEvents']] == ['ir', 'toy-fuse'] and d['traceEvents'][1]['ph'] == 'X' and d['traceEvents'][1]['args']['edits'] == 6"
ends 2 run p.yaml $P --dump-after toy-fise; err "has no such stage"

# ---- a backend: what it refuses is decomposed, or told in one go
ends 0 opt m.ir $P --use toy-functional --use toy-fuse --use toy-backend --json r.json -o low.ir
grep -q muladd low.ir && fail "a refused node was left"; grep -q "^properties imported functional lowered" low.ir || fail "not lowered"
json r.json "d['stages'][3]['numbers']['artifact-bytes']['value'] == 4 and d['stages'][3]['numbers']['decompose-rounds']['value'] == 1"
ends 2 opt m.ir $P --use toy-backend; err "requires a program that is functional"
echo "TOY add whole whole" > w.toy
ends 2 opt w.toy $P --use toy-functional --use toy-backend; err "backend toy-backend does not support 2 nodes, and no opset decomposes them"
err "toy.whole %3, %w"; err "reason: only add and mul run on a toy"; err "from toy.py:7, toy.block, node whole of the model"
echo "TOY endless" > e.toy
ends 2 opt e.toy $P --use toy-functional --use toy-backend; err "even after 64 rounds of decomposition"
echo "TOY nonsense" > x.toy
ends 2 opt x.toy $P; err "names an operator that is not a toy"

# ---- inspect, plugins, schema
ends 0 inspect m.toy $P; out "4 nodes, 2 operators, 2 leaves"; out "6 parameters (6 trained), 24 bytes"; out "toy.mul"
ends 0 inspect m.ir $P --json -; cp out r.json
json r.json "d['operators'] == {'toy.add': 2, 'toy.mul': 2} and d['parameters'] == 6 and d['graphs'][0]['kind'] == 'forward'"
json r.json "d['leaves'][0]['names'] == ['w'] and d['leaves'][0]['type']['shape'] == [2, 3] and d['leaves'][0]['requires_grad']"
ends 2 inspect p.yaml $P
ends 0 plugins $P; out "toy-backend            backend/2"
ends 0 plugins toy-fuse $P; out "budget (number)"; out "default 0.5; 0 to 1; fraction"; out "one of none, all, first"; out "needs    imported"
ends 0 plugins toy-backend -v $P; out "2 operators"; out "  toy.add"
ends 0 plugins toy $P -v; out "toy.endless"; out "toy-strict"
ends 0 plugins --json - $P; cp out r.json; json r.json "any(u['id'] == 'toy-fuse' and u['kind'] == 'pass/1' and not u['hidden'] for u in d['units'])"
ends 0 plugins toy-fuse --json - $P; cp out r.json
json r.json "[o['name'] for o in d['units'][0]['options']] == ['how', 'budget', 'rounds', 'report', 'label', 'table', 'limit']"
json r.json "d['units'][0]['options'][1] == {'name': 'budget', 'kind': 'number', 'required': False, 'default': 0.5, 'min': 0.0, 'max': 1.0, 'choices': [], 'unit': 'fraction', 'help': 'share of nodes', 'affects_output': False, 'experimental': False}"
json r.json "d['units'][0]['contract']['needs'] == ['imported']"
ends 0 schema $P; cp out r.json
json r.json "d['required'] == ['aot'] and 'train' in d['properties']['run']['properties']"
json r.json "any(r['if']['properties']['use']['const'] == 'toy-strict' and r['then']['properties']['with']['required'] == ['seed'] for r in d['properties']['stages']['items']['anyOf'][0]['allOf'])"
[ $bad = 0 ] && echo "commands: as documented"
exit $bad
