#!/bin/sh
# backend-cuda on its driver's double: branches and loops, sizes that a run tells, complex numbers, batches of nothing.
. "$(dirname "$0")/lib.sh"
cuda='--set vars.backend=backend-cuda --set run.device=cuda --set stages.backend-cuda.algorithms=first'

# what PyTorch gave
agree() {
  expects=""
  for e in $(expectations "$1"); do expects="$expects --expect $e"; done
  # shellcheck disable=SC2086
  status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$1train.pt2" $expects $cuda
}
for model in "$root"/tests/fixtures/loops/*/ "$root"/tests/fixtures/complex_views/*/ "$root"/tests/fixtures/regions/nested_branches/ \
  "$root"/tests/fixtures/regions/cond_fwd_bwd/; do
  agree "$model"
done
for model in batch_of_nothing dynamic_rows dynamic_mask dynamic_ranges dynamic_experts masked_lengths unique_places complex_rotary \
  last_states stft_loss; do
  agree "$root/tests/models/$model/"
done

# jumps and what they lead over are put on the stream out of step, a step at a time, and timed
for seed in 1 2; do
  export AOT_CUDA_DOUBLE="seed=$seed"
  agree "$root/tests/fixtures/loops/loops_in_loops/"
  agree "$root/tests/models/dynamic_rows/"
done
unset AOT_CUDA_DOUBLE
export AOT_CUDA_SYNC=1
agree "$root/tests/fixtures/loops/while_count/"
agree "$root/tests/models/dynamic_mask/"
unset AOT_CUDA_SYNC

# jumps are passed as often as they are, and timed so
cat > count.ir <<'IR'
aot 1
properties imported functional
leaf 0 parameter "w" : f32[8] grad
leaf 1 user_input 0 "x" : f32[8]
graph @more region {
  in %h = region 0 : f32[8]
  in %k = region 1 : i64[]
  %go : bool[] = aten.lt.Scalar %k, 5
  out region 0 = %go
}
graph @round region {
  in %h = region 0 : f32[8]
  in %k = region 1 : i64[]
  %n : f32[8] = aten.tanh.default %h
  %l : i64[] = aten.add.Tensor %k, 1
  out region 0 = %n
  out region 1 = %l
}
graph @main forward {
  in %w = parameter 0 : f32[8] grad
  in %x = user_input 1 : f32[8]
  %zero : i64[] = aten.full.default [], 0, dtype=i64
  %h : f32[8], %k : i64[] = higher_order.while_loop @more, @round, [%x, %zero], []
  %y : f32[8] = aten.mul.Tensor %h, %w
  %loss : f32[] = aten.sum.default %y
  out user_output 0 "loss" = %loss
}
IR
cat > count.yaml <<END
aot: 1
model: {path: count.ir}
stages: [{use: functionalize}, {use: autograd}, {use: partition-default}, {use: backend-cuda}]
run: {device: cuda, train: {steps: 3, data: random, log-every: 1}}
END
status 0 "$aothost" run count.yaml
grep -oE '^step [0-9]+/[0-9]+  loss [-0-9.]+' out > plain
status 0 "$aothost" run count.yaml --profile --json run.json
grep -oE '^step [0-9]+/[0-9]+  loss [-0-9.]+' out > profiled
same plain profiled
has run.json '"kernel": "jump"'

# other sizes than recorded; the model's own assertions on a number that it reads; what waits for the device is counted
rows=$root/tests/models/dynamic_rows; ranges=$root/tests/models/dynamic_ranges
call() { model=$1; shift; "$aothost" run "$root/pipelines/inference.yaml" --model "$model/train.pt2" --outputs o.st "$@"; }
"$edit" "$ranges/expected.safetensors" ranges.st keep input.
"$edit" ranges.st fewer.st add input.2 -3 add input.1 -9
"$edit" "$rows/expected.safetensors" rows.st keep input.
"$edit" rows.st much.st add input.2 10
for which in ranges fewer; do
  status 0 call "$ranges" --inputs $which.st --set vars.backend=backend-cpu
  mv o.st cpu.st
  # shellcheck disable=SC2086
  status 0 call "$ranges" --inputs $which.st $cuda
  [ "$(wc -c < cpu.st)" = "$(wc -c < o.st)" ] || complain "the backends give $which other sizes"
done
# shellcheck disable=SC2086
status 2 call "$rows" --inputs much.st $cuda
says 'u[0-9] in 1..4|Runtime assertion failed for expression u[0-9]'
# shellcheck disable=SC2086
status 0 call "$rows" --inputs rows.st $cuda --json rows.json
says '^warning: the host waits for the device at [4-9] places of the program'
tr -d ' \n' < rows.json > flat.json
has flat.json '"waits":\{"value":[4-9]'
has flat.json '"host-fallbacks/aten.unique_dim.default":\{"value":1'

# as many rows as are told: none, here, and running statistics stay what they are
cat > batch.ir <<'IR'
aot 1
properties imported functional
symbol u0 in [0, 6] hint 2
leaf 0 user_input 0 "x" : f32[6, 3]
leaf 1 user_input 1 "m" : f32[3]
graph @forward forward {
  in %x = user_input 0 : f32[6, 3]
  in %m = user_input 1 : f32[3]
  %column : f32[6] strides [3] = aten.select.int %x, 1, 0
  %is : bool[6] = aten.gt.Scalar %column, 100
  %i : i64[u0, 1] strides [1, u0] = aten.nonzero.default %is
  %at : i64[u0] = aten.select.int %i, 1, 0
  %some : f32[u0, 3] = aten.index_select.default %x, 0, %at
  %y : f32[u0, 3], %s : f32[3], %r : f32[3], %mean : f32[3], %var : f32[3] = aten._native_batch_norm_legit_functional.default %some, none, none, %m, %m, true, 0.1, 1e-05
  %sum : f32[3] = aten.sum.dim_IntList %y, [0]
  out user_output 0 "mean" = %mean
  out user_output 1 "var" = %var
  out user_output 2 "sum" = %sum
}
IR
for on in 'backend-ref' 'backend-cuda --set run.device=cuda'; do
  # shellcheck disable=SC2086
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model batch.ir --inputs random --seed 3 --outputs o.st --set vars.backend=$on
  mv o.st "${on%% *}.st"
done
same backend-ref.st backend-cuda.st

# a device that is lost in the middle of a loop: it ends
export AOT_CUDA_DOUBLE=lose-at=12
# shellcheck disable=SC2086
status 2 "$aothost" verify "$root/pipelines/verify.yaml" --model "$root/tests/fixtures/loops/while_count/train.pt2" \
  --expect "$root/tests/fixtures/loops/while_count/expected.safetensors" $cuda
says 'lost'
finish
