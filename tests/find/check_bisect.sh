#!/bin/sh
# aothost bisect: the one wrong edit among hundreds, the option, the bound, and the node of a backend whose results are zeros.
. "$(dirname "$0")/find_lib.sh"
cat > p.yaml <<'YAML'
aot: 1
vars: {backend: backend-ref, how: well, at: 1}
model: {path: none.pt2}
stages:
  - use: functionalize
  - use: autograd
  - use: renew
    with: {how: "${how}", at: "${at}"}
  - use: partition-mincut
  - use: ${backend}
YAML
bisect() { m=$1; shift; "$aothost" bisect p.yaml --plugin-dir "$plugins" --model "$models/$m/train.pt2" "$@"; }

status 0 bisect gpt_tiny --json j.json
says '^nothing goes wrong'
json '.wrong == false and .found == null and .not_compared == [] and .programs > 3'

status 1 bisect gpt_tiny --set vars.how=skip --json j.json
json '.found | .wrong == "results" and .stage == "renew" and .line == 7 and .first == .last and .n_edits > 300'
json '.found | (.edits | length) == 1 and (.edits[0] | test("^uses_replace ")) and (.removed | length) == (.added | length) and (.from | test("module"))'
status 1 bisect gpt_tiny --set vars.how=argument --json j.json
says '^edit [0-9]+ of [0-9]+:$'
says '^  - %.* none, 0\.0, true'
says '^  \+ %.* none, 1\.0, true'
json '.found | .edits[0] | test("^arg_set node [0-9]+ aten\\.scaled_dot_product_attention")'
for at in 0 3; do
  status 1 bisect resnet_tiny --set vars.how=twice --set vars.at=$at --json j.json
  json '.found | (.edits | length) == 1 and (.edits[0] | test("^operand_set .* operand 1"))'
done

status 1 bisect gpt_tiny --set vars.how=argument --by pass-option --json j.json
json '.found.options == ["how=argument"]'
status 1 bisect gpt_tiny --set vars.how=skip --by stage --json j.json
json '.found | .stage == "renew" and has("edits") == false'

# faults of tests/faults that change results: the edit of each
for fault in $(sed -n 's/^FAULT([a-z_]*, "\([a-z-]*\)", 0, .*/\1/p' "$root/tests/faults/faults.def"); do
  cat > f.yaml <<YAML
aot: 1
model: {import: ir, path: program.ir}
stages:
  - {use: faulty, with: {fault: $fault}}
YAML
  status 1 "$aothost" bisect f.yaml --plugin-dir "$faults" --model "$root/tests/faults/program.ir" --json j.json
  json '.found | .stage == "faulty" and .wrong == "results" and .first == .last and (.edits | length) == 1'
  n=$((${n:-0} + 1))
done
[ "$n" -ge 8 ] || complain "$n faults change results; there were 8"

# bounds are of the pipeline's own backend
status 1 bisect gpt_tiny --max-ms 1e-6 --set vars.backend=backend-cpu --by stage
says '^before stage functionalize it is wrong already: time'
status 1 bisect mlp --max-peak 1KiB --set vars.backend=backend-cpu --json j.json
json '.found.wrong == "memory"'
status 0 bisect mlp --max-peak 1GiB --max-ms 100000 --set vars.backend=backend-cpu

# a backend whose results are zeros: its first node
status 1 bisect gpt_tiny --plugin-dir "$arms" --set vars.backend=zeros --json j.json
says '^node 1 of [0-9]+: %'
json '.found | .stage == "zeros" and .nth == 1 and .n_nodes > 100 and (.node | test("aten\\.embedding"))'

status 2 bisect gpt_tiny --by chance
says "stage, edit, node or pass-option, not chance"
status 2 bisect gpt_tiny --max-peak lots
status 2 bisect gpt_tiny --good nobody
says "unknown unit 'backend-nobody'"
ls -d "$dir"/aothost-oracle-* 2> /dev/null && complain "left a folder behind"
finish
