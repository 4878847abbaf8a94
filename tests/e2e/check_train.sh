#!/bin/sh
# Training: equal seeds give equal bytes, resuming is exact, Ctrl-C keeps what was done, a loss that is no number ends the run.
. "$(dirname "$0")/lib.sh"
cat > train.yaml <<EOF
aot: 1
vars: {backend: backend-cpu}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: "\${backend}"}]
run:
  train: {steps: 9, lr: 0.01, seed: 4, log-every: 3, data: {tokens: text.bin}, checkpoint: last.st}
EOF
# gpt_tiny reads 97 tokens
yes 'the quick brown fox jumps over the lazy dog' | head -200 | tr 'a-z \n' '\001-\034' > text.bin

status 0 "$aothost" run train.yaml --json whole.json --trace trace.json
says '^step 1/9  loss [0-9.]+  lr 0.01  [0-9]+ tokens/s$'
says '^step 3/9 '
says '^step 9/9 '
says '^trained after step 9 of 9: loss'
says 'memory: one step graph, .* copied a step 0 bytes'
says '^partition-mincut +partition-mincut 0'
has trace.json '"step graph"'
mv last.st whole.st
status 0 "$aothost" run train.yaml
same last.st whole.st
status 0 "$aothost" run train.yaml --set run.train.seed=5
cmp -s last.st whole.st && complain "another seed gave the same run"

status 0 "$aothost" run train.yaml --set run.train.steps=4 --set run.train.checkpoint=half.st
status 0 "$aothost" run train.yaml --set run.train.resume=half.st
says '^trained after step 9 of 9'
same last.st whole.st
status 0 "$aothost" run train.yaml --set run.train.resume=whole.st
says 'nothing to do: the checkpoint is at step 9 of 9'
status 2 "$aothost" run train.yaml --set run.train.resume=half.st --set run.train.optimizer=sgd
says 'made with optimizer adamw, the run uses sgd'

# both backends tell the same story
status 0 "$aothost" run train.yaml --set vars.backend=backend-ref --json ref.json
loss() { sed -n 's/.*"last_loss": \([0-9.]*\),*/\1/p' "$1" | cut -c1-5; }
[ -n "$(loss ref.json)" ] && [ "$(loss ref.json)" = "$(loss whole.json)" ] || complain "losses $(loss ref.json) and $(loss whole.json)"
# every key of docs/RUN.md
for key in command pipeline model stages train results outputs memory unit name plugin version number ms nodes_before nodes_after edits \
  numbers steps first done first_loss last_loss seconds items_per_step items_per_second optimizer seed interrupted diverged checkpoint log \
  step loss lr saved_bytes boundary_bytes copied_bytes leaf_bytes arena_bytes peak_intermediate_bytes artifact_bytes peak_rss_bytes kernels; do
  has whole.json "\"$key\":"
done
for pair in '"steps": 9' '"done": 9' '"unit": "tokens"' '"interrupted": false' '"diverged": false' '"saved_bytes": 0' '"copied_bytes": 0' '"optimizer": "adamw"'; do
  has whole.json "$pair"
done

# Ctrl-C: the step is finished, the checkpoint is whole, and the run goes on from it
rm -f out # what the command before printed
"$aothost" run train.yaml --set run.train.steps=1000000 --set run.train.checkpoint=int.st --set run.train.log-every=1 > out 2>&1 &
pid=$!
tries=0
until grep -qs "^step 3/" out || [ $tries -gt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -INT $pid
wait $pid && code=0 || code=$?
[ "$code" = 0 ] || complain "interrupted with status $code"
says '^interrupted after step [0-9]+ of 1000000'
done_steps=$(sed -n 's/^interrupted after step \([0-9]*\) .*/\1/p' out)
status 0 "$aothost" run train.yaml --set run.train.steps=$((done_steps + 1)) --set run.train.resume=int.st
says "^trained after step $((done_steps + 1)) of"

# a loss that is no number: status 1, the step is named, the last checkpoint stays
status 1 "$aothost" run train.yaml --set run.train.lr=1000000 --set run.train.optimizer=sgd --set run.train.steps=50 --set run.train.checkpoint=bad.st
says 'loss is (NaN|infinite) at step [0-9]+'

# what is wrong is said before anything is compiled or lost
status 2 "$aothost" run train.yaml --set run.train.data.tokens=nothing.bin
says 'nothing.bin'
status 2 "$aothost" run train.yaml --set run.train.checkpoint=no/such/folder/c.st
says 'cannot be written to .*no/such/folder'
status 2 "$aothost" run train.yaml --outputs o.st
says 'the call after training has no inputs'
status 2 "$aothost" run train.yaml --outputs no/such/folder/o.st
says 'the outputs cannot be written to no/such/folder'
status 2 "$aothost" run train.yaml --set run.train.loss=3
says 'loss index 3 is out of range'
status 2 "$aothost" run train.yaml --set run.train.steps=x
[ -z "$(ls | grep tmp)" ] || complain "temporary files are left: $(ls)"
finish
