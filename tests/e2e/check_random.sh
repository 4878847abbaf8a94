#!/bin/sh
# Models that draw random numbers, from the command line: seeds, steps, resumed runs (DeepSpeed 6811: a checkpoint that lost the
# generator's state), the compile cache, hooks, kept regions, what is refused without the stage rng.
. "$(dirname "$0")/lib.sh"
gpt=$root/tests/models/dropout_gpt/train.pt2
pipeline=$root/pipelines/dropout.yaml
run() { status 0 "$aothost" run "$pipeline" --set run.train.data=random -q "$@"; }
train() { # OUT STEPS [OPTIONS]
  out=$1 steps=$2; shift 2
  run --model "$gpt" --set run.train.steps=$steps --set run.train.checkpoint=$out --set run.train.schedule=constant "$@"
}

# equal seeds give equal runs, whatever is saved; other seeds others
for partition in default mincut; do
  train $partition.st 6 --set vars.partition=partition-$partition --set vars.backend=backend-ref
done
same default.st mincut.st
train other.st 6 --seed 2 --set vars.backend=backend-ref --set vars.partition=partition-default
cmp -s default.st other.st && complain "seeds 1 and 2 train alike"

# deepspeed_6811: a run that stops and goes on is the run that did not stop
for backend in ref cpu; do
  train whole.st 6 --set vars.backend=backend-$backend
  train half.st 3 --set vars.backend=backend-$backend
  train resumed.st 6 --set vars.backend=backend-$backend --set run.train.resume=half.st
  same whole.st resumed.st
  # the offset of the checkpoint matters: with another one the rest of the run differs
  has half.st '"offset":"27"' # three steps of nine dropouts
  # without its digests, as files of earlier versions are: with them the change would be refused
  LC_ALL=C sed 's/"offset":"27"/"offset":"28"/; s/"digest/"erased/g' half.st > moved.st
  train lost.st 6 --set vars.backend=backend-$backend --set run.train.resume=moved.st
  cmp -s whole.st lost.st && complain "a wrong offset changes nothing ($backend)"
done

# one call: the seed decides
call() { out=$1; shift; run --model "$gpt" --set run.train=null --inputs random --grads --outputs $out "$@"; }
call a.st --set vars.backend=backend-ref
call b.st --set vars.backend=backend-ref
same a.st b.st
call c.st --set vars.backend=backend-ref --seed 5
cmp -s a.st c.st && complain "the seed changes nothing"
status 2 "$aothost" run "$pipeline" --model "$gpt" --seed many
says "'seed': expected an integer"

# a compiled program out of the cache draws the same
export AOT_CACHE_DIR=$dir/cache
call cold.st; call warm.st --json warm.json; has warm.json '"outcome": "hit"'
same cold.st warm.st

# hooks that keep every bit keep the gradients
sed 's|  - use: ${backend}|  - use: hooks\n    with: {codec: offload, filter: all}\n&|' "$pipeline" > hooked.yaml
status 0 "$aothost" run hooked.yaml --model "$gpt" --set run.train=null --inputs random --grads --outputs hooked.st -q --set vars.backend=backend-ref
same a.st hooked.st

# repeated bodies that draw: put in place, or kept whole, divided and run again
cat > bodies.ir <<'I'
aot 1
properties imported
leaf 0 parameter "w" : f32[4] grad data "0000803f000000400000404000008040"
leaf 1 user_input 0 "x" : f32[4]
leaf 2 user_input 1 "p" : bool[]
graph @main forward {
  in %w = parameter 0 : f32[4] grad
  in %x = user_input 1 : f32[4]
  in %p = user_input 2 : bool[]
  %a : f32[4] = higher_order.invoke_subgraph @layer, "layer", %w
  %b : f32[4] = higher_order.invoke_subgraph @layer, "layer", %a
  %c : f32[4] = higher_order.cond %p, @yes, @no, [%b]
  %d = aten.mul.Tensor %c, %x
  %loss = aten.sum.default %d
  out loss 0 = %loss
  out user_output 1 = %b
}
graph @layer region {
  in %x = region 0 : f32[4]
  %a = aten.dropout.default %x, 0.25, true
  %b = aten.sin.default %a
  %n = aten.rand_like.default %b
  %c = aten.mul.Tensor %b, %n
  out region 0 = %c
}
graph @yes region {
  in %x = region 0 : f32[4]
  %n = aten.randn_like.default %x
  %a = aten.mul.Tensor %x, %n
  out region 0 = %a
}
graph @no region {
  in %x = region 0 : f32[4]
  %a = aten.dropout.default %x, 0.5, true
  out region 0 = %a
}
I
for regions in inline keep; do
  for partition in default mincut; do
    cat > regions.yaml <<P
# in: bodies.ir; out: a step
aot: 1
stages: [{use: functionalize, with: {regions: $regions}}, {use: rng}, {use: autograd}, {use: partition-$partition}, {use: backend-ref}]
run: {inputs: random, seed: 3}
P
    status 0 "$aothost" run regions.yaml --model bodies.ir --grads --outputs $regions-$partition.st
  done
  same $regions-default.st $regions-mincut.st
done

# models of other kinds train, and what a partition saves changes no bit
for model in vit bert; do
  for partition in default mincut; do
    train $model-$partition.st 4 --model "$root/tests/models/dropout_$model/train.pt2" --set vars.backend=backend-ref \
      --set vars.partition=partition-$partition
  done
  same $model-default.st $model-mincut.st
  train $model-cpu.st 4 --model "$root/tests/models/dropout_$model/train.pt2" --set vars.backend=backend-cpu
done

# an archive that was exported with its backward: its masks are drawn, and drawn again
for partition in default mincut; do
  status 0 "$aothost" run "$root/pipelines/joint.yaml" --model "$root/tests/models/dropout_joint/joint.pt2" --grads \
    --outputs joint-$partition.st --set vars.partition=partition-$partition --set vars.backend=backend-ref
done
same joint-default.st joint-mincut.st

# states that PyTorch saved for the backward, as its exporter writes them: the same draw again, and another one
saved=$root/tests/models/saved_random_states
for backend in ref cpu; do
  printf '# in: a model; out: its outputs\naot: 1\nstages: [{use: functionalize}, {use: rng}, {use: backend-%s}]\n' $backend > states.yaml
  status 0 "$aothost" verify states.yaml --model "$saved/model.pt2" --expect "$saved/expected.safetensors" --rtol 0 --atol 0
  status 0 "$aothost" run states.yaml --model "$saved/model.pt2" --inputs "$saved/expected.safetensors" --outputs states.st
  "$edit" states.st again.st drop output.1 > out 2>&1 || complain "edit_tensors"
  "$edit" states.st other.st drop output.0 rename output.1 output.0 > out 2>&1 || complain "edit_tensors"
  cmp -s again.st other.st && complain "two draws are one"
done

# numbers that another generator drew are not met: verify says why
"$edit" "$saved/expected.safetensors" recorded.st add output.0 1 > out 2>&1 || complain "edit_tensors"
status 1 "$aothost" verify states.yaml --model "$saved/model.pt2" --expect recorded.st
says 'the program draws random numbers'

# sizes that the call tells: draws in generated loops and in kernels, of both backends, bit for bit
cat > sizes.ir <<'I'
aot 1
properties imported
symbol s0 in [1, 64] hint 7
leaf 0 user_input 0 "x" : f32[s0, 4]
graph @main forward {
  in %x = user_input 0 : f32[s0, 4]
  %u = aten.rand.default [s0, 3]
  %n = aten.full_like.default %x, 1.0
  %d = aten.dropout.default %n, 0.5, true
  %i = aten.randint.low 0, s0, [4, s0]
  %r = aten.randperm.default s0
  %t = aten.t.default %x
  %z = aten.randn_like.default %t
  out user_output 0 = %u
  out user_output 1 = %d
  out user_output 2 = %i
  out user_output 3 = %r
  out user_output 4 = %z
}
I
for backend in ref cpu; do
  printf '# in: sizes.ir; out: its outputs\naot: 1\nstages: [{use: functionalize}, {use: rng}, {use: backend-%s}]\n' $backend > sizes.yaml
  status 0 "$aothost" run sizes.yaml --model sizes.ir --inputs random --outputs sizes_$backend.st
done
same sizes_ref.st sizes_cpu.st

# without the stage a backend says what to do; a program with explicit draws is no exported program
sed '/use: rng/d' "$pipeline" > without.yaml
for backend in ref cpu; do
  status 2 "$aothost" run without.yaml --model "$gpt" --set run.train=null --inputs random --set vars.backend=backend-$backend
  says 'stage rng'
done
status 2 "$aothost" export "$gpt" -o exported.pt2 --use functionalize --use rng
says 'random numbers as an input'

# ranges without a number are errors at their node
refused() { # CALL WORDS
  printf '%s\n' 'aot 1' 'properties imported' 'leaf 0 user_input 0 "x" : f32[4]' 'graph @main forward {' '  in %x = user_input 0 : f32[4]' \
    "  %y = $1" '  out user_output 0 = %y' '}' > range.ir
  status 2 "$aothost" opt range.ir --use functionalize --use rng
  says "$2"
  says 'node %y'
}
refused 'aten.randint.low 5, 5, [3]' 'aten.randint.low: there is no integer from 5 on and below 5'
refused 'aten.randint_like.default %x, 0' 'aten.randint_like.default: there is no integer from 0 on and below 0'
refused 'aten.random.from %x, 5, 2' 'aten.random.from: there is no integer from 5 on and below 2'
refused 'aten.rrelu.default %x, 0.5, 0.25, true' "aten.rrelu.default: 'lower' is 0.5, more than 'upper', 0.25"
refused 'aten.uniform.default %x, 3.0, 1.0' "aten.uniform.default: 'from' must not be more than 'to'"

# numbers that are never 0, where u is (element 60 of seed 101365), and where the dtype has none so small: logarithms stay finite
positive() { # TYPE CALL
  printf '%s\n' 'aot 1' 'properties imported' 'leaf 0 user_input 0 "x" : f32[256]' 'graph @main forward {' \
    '  in %x = user_input 0 : f32[256]' "  %a = aten.full.default [256], 0.0078125, dtype=$1" "  %b = $2" '  %c = aten.log.default %b' '  %d = aten._to_copy.default %c, dtype=f32' \
    '  %y = aten.isfinite.default %d' '  %z = aten.all.default %y' '  out user_output 0 = %z' '}' > positive.ir
  for backend in ref cpu; do
    status 0 "$aothost" run "sizes-$backend.yaml" --model positive.ir --inputs random --outputs positive.st --seed 101365
    [ "$(tail -c 1 positive.st | od -A n -t u1 | tr -d ' ')" = 1 ] || complain "0 is drawn by $2 ($backend)"
  done
}
for backend in ref cpu; do sed "s/backend-[a-z]*/backend-$backend/" sizes.yaml > "sizes-$backend.yaml"; done
for dtype in f32 f16 bf16 f64; do
  positive $dtype 'aten.exponential.default %a'
  positive $dtype 'aten.exponential.default %a, 100000.0'
  positive $dtype 'aten._standard_gamma.default %a'
  positive $dtype 'aten._sample_dirichlet.default %a'
done

# neither do rates below 0 give numbers, when they come to be known: in a run
sed 's/%y = .*/%n = aten.full_like.default %x, -1.0\n  %y = aten.poisson.default %n/' range.ir > rate.ir
status 2 "$aothost" run sizes.yaml --model rate.ir --inputs random --outputs rate.st
says 'the rate -1 at element 0 is negative'

# what no rule knows: one error that counts, a note for each
printf '%s\n' 'aot 1' 'properties imported' 'leaf 0 user_input 0 "x" : f32[4]' 'graph @main forward {' '  in %x = user_input 0 : f32[4]' \
  '  %a : f32[4] = shake.noise.default %x' '  %b : f32[4] = shake.noise.default %a' '  %c = aten.dropout.default %b, 0.5, true' \
  '  out user_output 0 = %c' '}' > noise.ir
status 2 "$aothost" opt noise.ir --use functionalize --use rng --plugin-dir "$5/../../../plugins/rng/plugins"
says 'draws random numbers with 1 operator that cannot be written with explicit draws \(2 nodes\)'
says 'note: shake\.noise\.default: 2 nodes, the first here'
# .. unless its operator set makes it of what a rule knows
sed 's/shake\.noise/shake.speckle/' noise.ir > speckle.ir
status 0 "$aothost" opt speckle.ir --use functionalize --use rng --plugin-dir "$5/../../../plugins/rng/plugins"
[ "$(grep -c philox_uniform out)" = 3 ] || complain "three operators draw, not $(grep -c philox_uniform out)"
finish
