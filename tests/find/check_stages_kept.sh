#!/bin/sh
# --check-stages: every stage of the project keeps the results; a pass that is wrong at one place is named, with the value.
. "$(dirname "$0")/find_lib.sh"
cat > p.yaml <<'YAML'
aot: 1
vars: {backend: backend-ref, how: well, at: 1}
model: {path: none.pt2}
stages:
  - use: functionalize
  - use: rng
  - use: renew
    as: first
  - use: autograd
  - use: renew
    with: {how: "${how}", at: "${at}"}
  - use: partition-mincut
  - use: ${backend}
YAML
checked() { m=$1; shift; "$aothost" run p.yaml --plugin-dir "$plugins" --model "$models/$m/train.pt2" --inputs random --check-stages "$@"; }
clean() { ls -d "$dir"/aothost-oracle-* 2> /dev/null && complain "left a folder behind"; }

for model in mlp gpt_tiny resnet_tiny; do
  status 0 checked $model --set vars.backend=backend-cpu --json j.json
  says '^stages: 7 keep the results, as backend-ref has them$'
  jq -e '.stage_checks | length == 7 and all(.[]; .compared and .keys > 0 and .why == null)' j.json > out || complain "rows of $model"
done
status 0 "$aothost" run "$root/pipelines/quickstart.yaml" --set run.train.steps=1 --set vars.backend=backend-ref --check-stages
says '^stages: 6 keep the results'
clean

for how in skip argument twice; do
  status 3 checked gpt_tiny --set vars.how=$how --bundle-dir b-$how
  says '^p\.yaml:10:10: error: contract violation by plugin renew 1\.0\.0: .* changed what the program computes: [a-z0-9._]+(\[[0-9, ]+\])? is [-0-9.e]+, was [-0-9.e]+ \([0-9]+ of [0-9]+ elements\)'
  says 'reproduction bundle: b-'
done
# the bundle's program and stage do it again
status 3 "$aothost" opt b-skip/program.ir --plugin-dir "$plugins" --use renew --with how=skip --with at=1 --check-stages
says 'changed what the program computes: output\.0'
status 0 "$aothost" opt b-skip/program.ir --plugin-dir "$plugins" --use renew --check-stages -o after.ir
clean

# other failures are as without it
status 3 checked gpt_tiny --set vars.how=crash
says 'died of SIGSEGV during run'
status 2 checked gpt_tiny --set vars.how=refuse
says 'this node is not to be renewed'
status 2 "$aothost" run "$root/pipelines/fsdp.yaml" --check-stages
says 'runs programs on one rank'
finish
