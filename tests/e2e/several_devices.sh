#!/bin/sh
# several_devices.sh AOTHOST EDIT ROOT CC [FLAGS]: backends of one pipeline on devices of their own: the bytes are those of one device, whichever
# the run is on; what moves is counted; queues that are out of step find a wait that is missing.
. "$(dirname "$0")/lib.sh"
cc=$4; flags=${5:-}
mkdir -p prefix/include plugins
cp -r "$root/plugin-api/aot" prefix/include/
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden $flags -I prefix/include "$root/examples/vendor_backend/npu.c" -o plugins/npu.so -lm || exit 1
export AOT_PLUGIN_PATH=$PWD/plugins

cat > train.yaml <<Y
aot: 1
vars: {first: example.npu, rest: backend-ref, on: host, rest-on: host, seed: 0}
model: {path: $models/gpt_tiny/train.pt2}
stages:
  - use: functionalize
  - use: autograd
  - use: partition-mincut
  - use: assign
    with: {min-nodes: 1, move-delay: 0, move-rate: 1000000000} # as if it cost nothing
  - {use: "\${first}", device: "\${on}"}
  - {use: "\${rest}", as: rest, device: "\${rest-on}"}
run:
  train: {steps: 4, lr: 0.01, seed: 4, log-every: 1, data: {tokens: text.bin}, checkpoint: last.st}
Y
yes 'the quick brown fox jumps over the lazy dog' | head -200 | tr 'a-z \n' '\001-\034' > text.bin
run() { status 0 "$aothost" run train.yaml --json r.json "$@"; tr -s '\n ' ' ' < r.json > flat; }

# In one graph, in micro steps, in three graphs: all on the host; the vendor's parts elsewhere; the others elsewhere; all elsewhere.
for key in step=one-graph accumulate=2 step=three-graphs; do
  run --set run.train.$key
  mv last.st host.st
  has flat '"moved": \{ "bytes": 0, "bytes_per_step": 0 \}'
  for on in host strict; do
    for where in "strict host" "host strict"; do
      set -- $where
      run --set run.train.$key --set run.device=$on --set vars.on=$1 --set vars.rest-on=$2
      same last.st host.st
      says '^backends: example.npu [0-9]+ nodes in [0-9]+ parts'
      says " on $([ $on = host ] && echo strict || echo host)"
      says '^moved between devices: [0-9.]+ [KM]iB, [0-9.]+ [KM]iB of them a step$'
      has flat '"moved": \{ "bytes": [1-9][0-9]*, "bytes_per_step": [1-9][0-9]* \}'
    done
    run --set run.train.$key --set run.device=$on --set vars.on=strict --set vars.rest-on=strict
    same last.st host.st
  done
done

# Queues in other orders; goes on from its middle.
run
mv last.st host.st
for seed in 1 2 3; do
  sed "s/device: \"\${on}\"/device: strict, device-with: {seed: $seed, ahead: 20}/" train.yaml > seeded.yaml
  status 0 "$aothost" run seeded.yaml --set run.device=host
  same last.st host.st
  run --set run.device=strict --set run.device-with.seed=$seed --set run.device-with.ahead=20 --set vars.rest-on=host
  same last.st host.st
  # two devices, neither of them the host
  status 0 "$aothost" run seeded.yaml --set run.device=strict --set run.device-with.seed=$((seed + 7)) --set run.device-with.ahead=20
  says '^moved between devices: '
  same last.st host.st
done
for on in host strict; do
  set -- --set run.device=$on --set vars.on=strict
  run "$@" --set run.train.steps=2 --set run.train.checkpoint=half.st
  run "$@" --set run.train.resume=half.st
  same last.st host.st
done

# Random numbers, clipped gradients, half precision with a scaled loss: the offset, the norm and the scale go where they are wanted.
sed -e "s|path: .*|path: $root/tests/models/dropout_vit/train.pt2}|" -e 's/  - use: autograd/  - use: rng\n&/' \
  -e 's/data: {.*}, checkpoint/data: random, checkpoint/' train.yaml > dropout.yaml
for key in clip-norm=0.5 precision=f16; do
  status 0 "$aothost" run dropout.yaml --set run.train.$key
  mv last.st alone.st
  for where in "host strict host" "strict strict host" "strict host strict"; do
    set -- $where
    status 0 "$aothost" run dropout.yaml --set run.train.$key --set run.device=$1 --set vars.on=$2 --set vars.rest-on=$3
    same last.st alone.st
  done
done

# A backend alone that names a device is the run's.
cat > alone.yaml <<Y
aot: 1
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-ref, device: strict}]
Y
status 0 "$aothost" verify alone.yaml --model "$models/mlp/train.pt2" --expect "$models/mlp/expected.safetensors"
status 0 "$aothost" run alone.yaml --model "$models/mlp/train.pt2" --inputs random
says '^device strict: '

# Models against PyTorch.
sed '/^run:/,$d; /^model:/d' train.yaml > verify.yaml
for model in bert_tiny gpt_tiny mlp resnet_tiny vit_tiny; do
  for where in "host strict host" "strict strict host" "strict host strict"; do
    set -- $where
    status 0 "$aothost" verify verify.yaml --model "$models/$model/train.pt2" --expect "$models/$model/expected.safetensors" \
      --set run.device=$1 --set vars.on=$2 --set vars.rest-on=$3 --set vars.rest=backend-cpu
    says 'keys agree'
  done
done

# Two backends that take everything, one of them but for products and sums: parts go back and forth, whichever is where.
cat > two.yaml <<Y
aot: 1
vars: {first: backend-ref, rest: backend-cpu, on: strict, rest-on: host}
stages:
  - use: functionalize
  - use: autograd
  - use: partition-mincut
  - use: assign
    with: {move-delay: 0, move-rate: 1000000000, withhold: "backend-ref=aten.mm.default,aten.addmm.default,aten.add.Tensor,aten.linear.default"}
  - {use: "\${first}", device: "\${on}"}
  - {use: "\${rest}", device: "\${rest-on}"}
Y
for model in bert_tiny gpt_tiny mlp resnet_tiny vit_tiny; do
  for where in "host strict host" "host host strict" "strict strict host" "strict host strict"; do
    set -- $where
    status 0 "$aothost" verify two.yaml --model "$models/$model/train.pt2" --expect "$models/$model/expected.safetensors" \
      --set run.device=$1 --set vars.on=$2 --set vars.rest-on=$3
    says 'keys agree'
  done
done
status 0 "$aothost" run two.yaml --model "$models/gpt_tiny/train.pt2" --inputs random
says '^backends: backend-ref [1-9][0-9]* nodes in [1-9][0-9]+ parts on strict; backend-cpu [1-9][0-9]* nodes in [1-9][0-9]+ parts$'
status 2 "$aothost" run two.yaml --model "$models/mlp/train.pt2" --inputs random --set stages.assign.withhold=nobody=aten.mm.default
says "operators are to be withheld from 'nobody', but no backend is called so"

# Parts that cost more to move than they could save stay where they are.
status 0 "$aothost" run train.yaml --set vars.on=strict --set vars.rest=backend-cpu --set stages.assign.move-delay=20000
says '^backends: example.npu 0 nodes in 0 parts on strict; rest [1-9][0-9]* nodes'
says '^moved between devices: 0 bytes'
status 0 "$aothost" run train.yaml --set vars.on=host --set vars.rest=backend-cpu --set stages.assign.move-delay=20000
says '^backends: example.npu [1-9][0-9]* nodes'

# What moves has a name.
status 0 "$aothost" run train.yaml --set vars.on=strict --no-cache --dump-dir dumps
status 0 "$aothost" inspect "$(ls dumps/*.assign.ir)"
says '^moved between devices$'
says '^  before step_part[0-9]+: a result of step_part[0-9]+, [0-9]+ bytes, from strict to the run.s device$'
says '^  before step_part[0-9]+: state "[a-z_0-9.]+", [0-9]+ bytes, from the run.s device to strict, until it changes$'
has "$(ls dumps/*.assign.ir)" 'aot.part.default @step_part[0-9]+, "example.npu", "strict", %'
has "$(ls dumps/*.assign.ir)" 'aot.part.default @step_part[0-9]+, "rest", none, %'

# A graph whose sizes only the run tells is one part, wherever it is.
for where in "host host strict" "strict strict host" "strict host strict"; do
  set -- $where
  status 0 "$aothost" verify verify.yaml --model "$root/tests/models/dynamic_rows/train.pt2" \
    --expect "$root/tests/models/dynamic_rows/expected.safetensors" --set run.device=$1 --set vars.on=$2 --set vars.rest-on=$3 \
    --set vars.rest=backend-cpu
  says 'keys agree'
done

# What fails on one device is told, once for each that hears of it, and nothing of the others is left behind: a number out of range in a part,
# a device that is lost in the middle, one that has too little memory.
tr '\001-\034' '\377' < text.bin > bad.bin
for where in "host strict host" "host host strict" "strict strict host" "strict host strict"; do
  set -- $where
  status 2 "$aothost" run train.yaml --set run.device=$1 --set vars.on=$2 --set vars.rest-on=$3 --set run.train.data.tokens=bad.bin
  says 'aten.embedding.default: index 255 is out of range for dimension 0 of size 96'
  [ "$(grep -c error: out)" = 1 ] || complain "there is more than one error"
done
for on in host strict; do
  for n in 1 40 100; do
    sed "s/device: \"\${on}\"/device: strict, device-with: {lose-at: $n}/" train.yaml > lost.yaml
    status 2 "$aothost" run lost.yaml --set run.device=$on
    says "device strict was lost when call $n was to begin"
    says 'the run stops at step [1-4]'
    grep error: out | grep -vE 'device strict (was lost when|is lost: what was on it is gone)' && complain "more is wrong than that"
  done
  sed 's/device: "${on}"/device: strict, device-with: {memory: 30000}/' train.yaml > small.yaml
  status 2 "$aothost" run small.yaml --set run.device=$on
  says 'device strict has no memory for [0-9]+ bytes: [0-9]+ of its 30000 are free'
done

# What is wrong is told at its line.
sed 's/use: autograd/&\n    device: strict/' train.yaml > pass.yaml
status 2 "$aothost" check pass.yaml
says "'device' requires a backend, and this stage is not one"
sed 's/use: assign/use: assign\n  - use: functionalize/; /with:/d' train.yaml > early.yaml
status 2 "$aothost" check early.yaml
says "it partitions the program among several backends; they must follow it directly"
status 2 "$aothost" check train.yaml --set vars.on=nowhere
says "unknown unit 'nowhere'"
status 2 "$aothost" check train.yaml --set stages.assign.min-nodes=-1
finish
