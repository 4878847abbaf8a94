#!/bin/sh
# Devices: a run on memory that the host cannot touch gives the same bytes; what goes wrong with a device is told.
. "$(dirname "$0")/lib.sh"
cat > train.yaml <<EOF
aot: 1
vars: {backend: backend-cpu}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: "\${backend}"}]
run:
  train: {steps: 4, lr: 0.01, seed: 4, log-every: 1, data: {tokens: text.bin}, checkpoint: last.st}
EOF
yes 'the quick brown fox jumps over the lazy dog' | head -200 | tr 'a-z \n' '\001-\034' > text.bin

in_one_line() { tr -s '\n ' ' ' < "$1" > flat; has flat "$2"; }

for backend in cpu ref; do
  status 0 "$aothost" run train.yaml --set vars.backend=backend-$backend --json host.json
  in_one_line host.json '"name": "host", "calls": 4, "copied_bytes": 0, "copied_bytes_per_step": 0'
  mv last.st host.st
  for seed in 1 2; do
    status 0 "$aothost" run train.yaml --set vars.backend=backend-$backend --set run.device=strict --set run.device-with.seed=$seed --json strict.json
    says '^device strict: [0-9.]+ [KM]iB there and back, [0-9.]+ [a-zKM]+ of them a step, 4 calls$'
    in_one_line strict.json '"name": "strict", "calls": 4, "copied_bytes": [1-9][0-9]*, "copied_bytes_per_step": [1-9]'
    same last.st host.st
  done
done

# three graphs: what one leaves for the next stays there
status 0 "$aothost" run train.yaml --set run.train.step=three-graphs
mv last.st host.st
status 0 "$aothost" run train.yaml --set run.train.step=three-graphs --set run.device=strict
says '^device strict: [0-9.]+ [KM]iB there and back, [0-9.]+ [a-zKM]+ of them a step, 12 calls$'
same last.st host.st

# Losses are those of the host, in their order; a learning rate that changes is written, the offset of random numbers moves on by itself; a run
# that goes on from a checkpoint in its middle ends where the whole one does.
sed -e "s|path: .*|path: $root/tests/models/dropout_vit/train.pt2}|" -e 's/{use: autograd}/{use: rng}, &/' -e 's/steps: 4/steps: 6, warmup: 3/' \
  -e 's/data: {.*}, checkpoint: last.st/data: random, checkpoint: {path: last.st, every: 4}/' train.yaml > dropout.yaml
for accumulate in 1 2; do
  status 0 "$aothost" run dropout.yaml --set run.train.accumulate=$accumulate --json host.json
  mv last.st host.st
  status 0 "$aothost" run dropout.yaml --set run.train.accumulate=$accumulate --set run.device=strict --json strict.json
  same last.st host.st
  for on in host strict; do grep -E '"(step|loss|lr)":' $on.json > $on.losses; done
  [ "$(grep -c loss host.losses)" = 6 ] || complain "there are not six losses"
  same host.losses strict.losses
  status 0 "$aothost" run dropout.yaml --set run.train.accumulate=$accumulate --set run.device=strict --set run.train.steps=3 \
    --set run.train.checkpoint.path=half.st
  status 0 "$aothost" run dropout.yaml --set run.train.accumulate=$accumulate --set run.device=strict --set run.train.resume=half.st
  same last.st host.st
done

# More micro steps than losses are on their way at a time: their mean is the loss, which is that of one step where all data are alike.
for on in host strict; do
  for accumulate in 1 600; do
    status 0 "$aothost" run train.yaml --set "model.path=$models/mlp/train.pt2" --set "run.train.data=$models/mlp/expected.safetensors" \
      --set run.train.steps=2 --set run.train.accumulate=$accumulate --set run.device=$on
    grep -o '^step.*loss [0-9.]*' out > micro.$accumulate
  done
  [ "$(wc -l < micro.1)" = 2 ] || complain "there are not two losses"
  same micro.1 micro.600
done

# A step takes its inputs there, with the learning rate beside them, and its loss back, to the byte; parameters, states, saved values,
# gradients and their sums stay. Three graphs are given the loss's tangent as well; their learning rate stays.
moves() { # moves BYTES MODEL KEY=VALUE
  status 0 "$aothost" run train.yaml --set "model.path=$models/$2/train.pt2" --set run.train.data=random --set run.device=strict \
    --set "run.train.$3" --json strict.json
  in_one_line strict.json "\"copied_bytes_per_step\": $1 }"
}
gpt=$((2 * (2 * 16 * 8))) mlp=$((8 * 16 * 4 + 8 * 8)) loss=4 rate=64
moves $((gpt + rate + loss)) gpt_tiny step=one-graph
moves $((mlp + rate + loss)) mlp step=one-graph
moves $((gpt + loss + loss)) gpt_tiny step=three-graphs
moves $((mlp + loss + loss)) mlp step=three-graphs
moves $((2 * (gpt + loss))) gpt_tiny accumulate=2
moves $((2 * (mlp + loss))) mlp accumulate=2

# sizes that the run tells: outputs have memory on the device during the call
for model in dynamic_mask dynamic_rows; do
  folder=$root/tests/models/$model
  status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$folder/train.pt2" --expect "$folder/expected.safetensors" \
    --set run.device=strict --set run.device-with.seed=3
done

# a backend that cannot run there says so, out of the cache as well as fresh
for again in 1 2; do
  status 2 "$aothost" run train.yaml --set run.device=strict --set run.device-with.host-work=false
  says 'it computes on the CPU, and the device has no memory that the CPU computes on'
  [ "$(grep -c 'error:' out)" = 1 ] || complain "more than one error"
done

# The device is lost in the middle of step 5: whoever waits is told, with the graph and the step, and the run keeps its last checkpoint.
status 0 "$aothost" run train.yaml --set run.train.steps=6
mv last.st whole.st
status 2 "$aothost" run train.yaml --set run.train.steps=6 --set 'run.train.checkpoint={path: last.st, every: 2}' --set run.device=strict \
  --set run.device-with.lose-at=5
says 'error: device strict was lost when call 5 was to begin, on queue 1'
says 'note: while the step graph ran'
says 'note: the run stops at step 5; the last checkpoint is of step 4'
[ "$(grep -c 'error:' out)" = 1 ] || complain "more than one error"
status 0 "$aothost" run train.yaml --set run.train.steps=6 --set run.train.resume=last.st
same last.st whole.st

# More than the device has is told before the first step, with what was asked for and what is free.
status 2 "$aothost" run train.yaml --set run.device=strict --set run.device-with.memory=100000
says 'error: device strict has no memory for [0-9]+ bytes: [0-9]+ of its 100000 are free'
says 'note: while parameter [a-z0-9_.]+ was taken to the device'
says 'note: the run stops at step 1; no checkpoint was written'
status 2 "$aothost" run train.yaml --set run.device=strict --set run.device-with.memory=400000
says 'error: device strict has no memory for [0-9]+ bytes: [0-9]+ of its 400000 are free'
says 'note: the arena of the step graph takes [0-9]+ bytes'

# On the host with guards: the same bytes, and nothing is found.
for key in step=one-graph step=three-graphs accumulate=2; do
  for backend in cpu ref; do
    status 0 "$aothost" run train.yaml --set vars.backend=backend-$backend --set run.train.$key
    mv last.st host.st
    AOT_VALIDATE=1
    export AOT_VALIDATE
    status 0 "$aothost" run train.yaml --set vars.backend=backend-$backend --set run.train.$key
    unset AOT_VALIDATE
    same last.st host.st
  done
done

status 2 "$aothost" run train.yaml --set run.device=strict:1
says "strict has no option 'ordinal'; it has: seed, host-work, lose-at, memory"
status 2 "$aothost" run train.yaml --set run.device=host:1
says "device 'host' has no options"
status 2 "$aothost" run train.yaml --set run.device=strikt
says "unknown unit 'strikt'; did you mean 'strict'"
status 2 "$aothost" run train.yaml --set run.device=backend-ref
says 'has kind backend/2, which is not allowed here'
status 0 "$aothost" check train.yaml -v --set run.device=strict
says '^  device: strict$'
says '^  device-with: \{seed: 0, host-work: true, lose-at: 0, memory: 0, ahead: 0\}$'
status 0 "$aothost" check train.yaml -v
says '^  device: host$'
finish
