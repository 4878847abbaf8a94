#!/bin/sh
# aothost replay: what failed fails again out of its bundle, with the same message and status; stages, runs, operators by text.
. "$(dirname "$0")/find_lib.sh"
# again STATUS BUNDLE [FLAG..]: the first error is that of `out`
again() {
  wanted=$1; bundle=$2; shift 2
  sed -n 's/.*error: //p' out | head -1 | sed 's/ computes: .*//' > first # numbers are those of parameters made up
  status "$wanted" "$aothost" replay "$bundle" "$@"
  sed -n 's/.*error: //p' out | head -1 | sed 's/ computes: .*//' > second
  [ -s first ] || complain "no error at first"
  same first second
}
cat > p.yaml <<'YAML'
aot: 1
vars: {backend: backend-ref, how: well}
model: {path: none.pt2}
stages:
  - use: functionalize
  - use: autograd
  - use: renew
    with: {how: "${how}", at: 1}
  - use: partition-mincut
  - use: ${backend}
YAML
run() { "$aothost" run p.yaml --plugin-dir "$plugins" --plugin-dir "$arms" --model "$models/gpt_tiny/train.pt2" --inputs random "$@"; }

# stages: a refusal, a crash, changed results
status 2 run --set vars.how=refuse --bundle-dir refuse
again 2 refuse --plugin-dir "$plugins" --json r.json
jq -e '.fails and .status == 2 and .bundle == "refuse"' r.json > jq.out || complain "r.json says otherwise"
status 3 run --set vars.how=crash --bundle-dir crash
again 3 crash --plugin-dir "$plugins"
status 3 run --set vars.how=skip --check-stages --bundle-dir skip
again 3 skip --plugin-dir "$plugins"
sed 's/how: refuse/how: well/' refuse/pipeline.yaml > well && mv well refuse/pipeline.yaml
status 0 "$aothost" replay refuse --plugin-dir "$plugins"
says '^nothing fails$'

# a run: an index that is out of range in the inputs alone
wrong_index <<'IR'
aot 1
properties imported functional
leaf 0 user_input 0 "i" : i64[3]
leaf 1 parameter "w" : f32[4, 100]
graph @main forward {
  in %i = user_input 0 : i64[3]
  in %w = parameter 1 : f32[4, 100]
  %e : f32[3, 100] = aten.embedding.default %w, %i
  out user_output 0 "a" = %e
}
IR
for backend in backend-ref backend-cpu; do
  status 2 "$aothost" run i.yaml --set vars.backend=$backend --bundle-dir $backend
  says 'replay: aothost replay '
  [ -s $backend/call.safetensors ] || complain "the bundle of $backend lacks what the call was given"
  again 2 $backend
done
# a backend whose executable crashes
cat > zeros.yaml <<'YAML'
aot: 1
model: {path: none.pt2}
stages:
  - use: functionalize
  - use: zeros
    with: {how: crash-at-once}
YAML
status 3 "$aothost" run zeros.yaml --plugin-dir "$arms" --model "$models/mlp/train.pt2" --inputs random --bundle-dir zeros
again 3 zeros --plugin-dir "$arms"

# operators that the pipeline declares by text
cat > own.ir <<'IR'
aot 1
properties imported functional
leaf 0 user_input 0 "x" : f32[4]
graph @main forward {
  in %x = user_input 0 : f32[4]
  %y : f32[4] = mine.twice.default %x
  out user_output 0 "a" = %y
}
IR
cat > own.yaml <<'YAML'
aot: 1
model: {import: ir, path: own.ir}
operators: ["mine::twice(Tensor x) -> Tensor"]
stages:
  - use: backend-ref
YAML
status 2 "$aothost" run own.yaml --inputs random --bundle-dir own
says 'replay: aothost replay own'
again 2 own

status 2 "$aothost" replay "$dir"
says 'is no bundle'
finish
