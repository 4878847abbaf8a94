#!/bin/sh
# What a model prints and asserts: once, in order, on the standard output; under both partitioners and both backends.
. "$(dirname "$0")/lib.sh"
here=$root/tests/e2e/effects own=$5/note

# run MODEL PIPELINE ARGS...: every line of the run that the model itself wrote (they begin with a dot) goes to `printed`
run() {
  model=$1; pipeline=$2; shift 2
  status $wanted "$aothost" run "$root/pipelines/$pipeline.yaml" --model "$model" --inputs random --no-cache "$@"
  grep '^\. ' out > printed
}
prints() { printf '. %s\n' "$@" > wanted_lines; same printed wanted_lines; }

for backend in backend-ref backend-cpu; do
  wanted=0
  run "$here/straight.ir" inference --set vars.backend=$backend
  prints one two three
  for partition in partition-default partition-mincut; do
    set -- --grads --set vars.backend=$backend --set vars.partition=$partition
    run "$here/straight.ir" verify "$@"
    prints one two three
    run "$here/branches.ir" verify "$@"
    prints before 'the first' inner after
    run "$here/tokens.pt2" verify "$@"
    prints one two
    status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$here/branches.pt2" --expect "$here/branches.safetensors" \
      --set vars.backend=$backend --set vars.partition=$partition
    says '^grad.w .*ok$'
    grep '^\. ' out > printed
    prints yes
  done
  wanted=2
  run "$here/fails.ir" inference --set vars.backend=$backend
  prints 'before it'
  says 'x is never less than itself'
  says 'node  *aten._assert_async.msg'
done

# A plugin's own operators: note prints through its decomposition. The archive holds it in with_effects.
wanted=0
for backend in backend-ref backend-cpu; do
  run "$here/custom.pt2" inference --plugin-dir "$own" --set vars.backend=$backend
  prints noted
  for partition in partition-default partition-mincut; do
    run "$here/custom.ir" verify --plugin-dir "$own" --grads --set vars.backend=$backend --set vars.partition=$partition
    prints first noted noted last
  done
done
status 2 "$aothost" opt "$here/stamp.ir" --plugin-dir "$own" --use functionalize
says 'with an effect that writes or aliases its arguments is not supported'

# An operator in with_effects is asked for by its own name.
status 2 "$aothost" run "$root/pipelines/inference.yaml" --model "$here/custom.pt2" --inputs random
says 'example.note.default: 1 node'
finish
