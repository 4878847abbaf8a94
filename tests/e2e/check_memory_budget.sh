#!/bin/sh
# Objective memory over every model, backend and budget: the peak is within the budget, by the simulation and by what the backend
# tells, and falls with it, or the error tells the least that was found; gradients keep every bit of those with everything saved
# (backend-ref); what backend-cpu plans is what the simulation said: to the byte, but for what loops keep of their rows, less
# than a sixteenth.
. "$(dirname "$0")/lib.sh"

cat > budget.yaml <<'END'
aot: 1
vars: {backend: backend-ref, budget: "1.0"}
stages:
  - use: functionalize
  - use: autograd
  - {use: partition-mincut, with: {objective: memory, budget: "${budget}"}}
  - use: ${backend}
END

number() { tr -d ' \n' < json | sed -n "s/.*\"$1\":{\"value\":\([-0-9.e+]*\).*/\1/p" | sed 's/\.0$//'; }
inputs=inputs.safetensors
step() { # OUT PIPELINE [OPTIONS]
  out_file=$1 pipeline=$2; shift 2
  "$aothost" run "$pipeline" --model "$archive" --inputs $inputs --grads --outputs "$out_file" -q "$@" > out 2>&1
}

within() { # the run before: numbers against its budget, and against the budget before
  allowed=$(number budget-bytes); measured=$(number measured-peak-bytes); simulated=$(number peak-bytes)
  # a backend that keeps three quarters of the simulation or less (nested branches on backend-ref) counts alone
  [ "$simulated" -le "$allowed" ] || [ $((4 * allowed)) -le $((3 * simulated)) ] ||
    complain "$name at $budget: peak $simulated above $allowed"
  [ "$measured" -le "$allowed" ] || complain "$name at $budget: the backend's peak $measured above $allowed"
  peak=$simulated; [ "$measured" -le "$peak" ] || peak=$measured
  [ "$peak" -le "$before" ] || complain "$name at $budget: peak $peak rises from $before"
  before=$peak
}

check() { # after a step that fits
  within
  if [ $backend = backend-ref ]; then same plain planned
  else
    apart=$((measured - simulated))
    [ $((16 * ${apart#-})) -le "$simulated" ] || complain "$name at $budget: $simulated simulated, $measured planned"
  fi
}

budgets="1.0 0.8 0.5 0.1"
[ "${AOT_SWEEPS:-}" != whole ] || budgets="1.0 0.9 0.8 0.7 0.6 0.5 0.4 0.3 0.2 0.1" # tools/nightly
sweep() { # BACKEND
  backend=$1; before=999999999999; least=0; n_fit=0
  for budget in $budgets; do
    [ $least = 0 ] || [ $budget = 0.1 ] || continue # what lies between fails alike
    if step planned budget.yaml --set vars.budget=$budget --set vars.backend=$backend --json json; then
      [ $least = 0 ] || complain "$name fits $budget but not a larger budget"
      check
      n_fit=$((n_fit + 1))
    else
      says "the smallest peak found is [0-9]+ bytes"
      least=$(sed -n 's/.*the smallest peak found is \([0-9]*\) bytes.*/\1/p' out | head -1)
      [ "${least:=0}" -gt 0 ] && [ "$least" -le "$before" ] || complain "$name at $budget: the least is $least, $before was possible"
    fi
  done
  [ $n_fit -gt 0 ] || complain "$name fits no budget at all on $backend"
  [ "$least" != 0 ] || return 0
  budget=$least # the least is a budget that holds, and a byte less is none
  step planned budget.yaml --set vars.budget=$least --set vars.backend=$backend --json json || complain "$name: the least, $least bytes, is refused"
  check
  ! step planned budget.yaml --set vars.budget=$((least - 1)) --set vars.backend=$backend || complain "$name: less than the least is possible"
}

for archive in "$models"/*/train.pt2 "$models"/*/core.pt2; do
  name=$(basename "$(dirname "$archive")")/$(basename "$archive" .pt2)
  cp "$(dirname "$archive")/expected.safetensors" inputs.safetensors
  step plain "$root/pipelines/verify.yaml" || complain "$name does not run"
  sweep backend-ref
  sweep backend-cpu
done

# Dropout: what is drawn again is drawn alike.
sed 's/- use: autograd/- use: rng\n  - use: autograd/' budget.yaml > drawn.yaml && mv drawn.yaml budget.yaml
printf 'run: {seed: 3}\n' >> budget.yaml
sed 's/{use: partition-mincut.*}/use: partition-default/' budget.yaml > default.yaml
for archive in "$root"/tests/models/dropout_*/train.pt2; do
  name=$(basename "$(dirname "$archive")")
  inputs=random
  step plain default.yaml || complain "$name does not run"
  sweep backend-ref
  sweep backend-cpu
done
inputs=inputs.safetensors

# What runs inside of regions that are called is in the simulation: the backend, which tells nothing of calls, takes no more.
for name in models/repeated_regions fixtures/regions/invoke_subgraph; do
  status 0 "$aothost" opt "$root/tests/$name/train.pt2" --use functionalize --with regions=keep --use autograd \
    --use partition-mincut-regions --use partition-mincut --with objective=memory --use backend-cpu -o kept.ir --json json
  [ "$(number arena-bytes)" -le "$(number peak-arena-bytes)" ] || complain "$name: the arena is larger than simulated"
done

# What the simulation does not know (kernels, other layouts of memory) takes the backend more: 1.0 is of its number then,
# and the fraction that an error tells is one that holds.
for name in cond_fwd_bwd conv_channels_last dyn_attention nested_branches; do
  for backend in backend-ref backend-cpu; do
    kept="$root/tests/fixtures/regions/$name/train.pt2 --use functionalize --with regions=keep --use autograd --use partition-mincut --with objective=memory"
    status 0 "$aothost" opt $kept --use $backend -o kept.ir --json json
    before=999999999999 budget=1.0; within
    status 2 "$aothost" opt $kept --with budget=0.05 --use $backend -o kept.ir
    least=$(sed -n 's/.*(\([0-9.]*\) of the all-saved peak.*/\1/p' out | head -1)
    [ "$least" = 1.000 ] || status 0 "$aothost" opt $kept --with "budget=${least:-0}" --use $backend -o kept.ir
  done
done

# The rows that partition-mincut tells of the divided program are those of the simulation that chose it.
for name in gpt_tiny/train resnet_tiny/core; do
  status 0 "$aothost" opt "$models/$name.pt2" --use functionalize --use autograd --use partition-mincut --with objective=memory \
    --with budget=0.9 --json json -o divided.ir
  status 0 "$aothost" inspect divided.ir --memory --unit partition-mincut --json rows
  grep -q "\"peak_bytes\": $(number peak-bytes),\$" rows || complain "$name: rows tell another peak than the search"
done
status 1 "$aothost" inspect divided.ir --memory --unit partition-mincut --budget 1KiB
status 0 "$aothost" opt "$models/mlp/train.pt2" --use functionalize --use autograd -o joint.ir
status 2 "$aothost" inspect joint.ir --memory --unit partition-mincut
says "partition it first"

archive=$models/mlp/train.pt2
cp "$models/mlp/expected.safetensors" inputs.safetensors
for budget in -1 0 abc 1.5 1e30 64MiBs nan; do
  ! step planned budget.yaml --set "vars.budget=$budget" || complain "budget $budget is taken"
  says "budget '$budget': .*(expected|above 0|below 9e15|at most 1)"
done
status 0 "$aothost" opt "$archive" --use functionalize --use autograd --use partition-mincut --with budget=0.5 -o divided.ir
says "budget bounds nothing with objective bytes"
status 0 "$aothost" opt "$archive" --use functionalize --use autograd --use partition-mincut -o divided.ir
! grep -q "bounds nothing" out || complain "a warning of a budget that is not given"
step planned budget.yaml --set vars.budget=1GiB || complain "a budget in GiB is refused"
finish
