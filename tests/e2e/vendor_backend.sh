#!/bin/sh
# vendor_backend.sh AOTHOST EDIT ROOT CC [FLAGS]: examples/vendor_backend as a user builds it, with nothing but the installed headers, in
# pipelines before other backends: the same results, in every command, out of the cache too, on memory that the host cannot touch.
. "$(dirname "$0")/lib.sh"
cc=$4; flags=${5:-}
example=$root/examples/vendor_backend
mkdir -p prefix/include plugins
cp -r "$root/plugin-api/aot" prefix/include/
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror $flags -I prefix/include "$example/npu.c" -o plugins/npu.so -lm || exit 1
export AOT_PLUGIN_PATH=$PWD/plugins

status 0 "$aothost" check "$example/pipeline.yaml"
says 'backends, the preferred one first: example.npu, backend-cpu'

verify() { # FOLDER FLAGS..
  folder=$1; shift
  status 0 "$aothost" verify "$example/pipeline.yaml" --model "$folder/train.pt2" --expect "$folder/expected.safetensors" "$@"
  says 'keys agree'
}
for model in mlp gpt_tiny resnet_tiny; do
  verify "$models/$model"
  verify "$models/$model" # out of the cache
done
verify "$models/gpt_tiny" --set vars.rest=backend-ref --set vars.partition=partition-default
verify "$models/gpt_tiny" --set run.device=strict
for folder in models/last_states fixtures/loops/scan_gru fixtures/regions/nested_branches fixtures/scenarios/as_strided_row_past_its_end; do
  verify "$root/tests/$folder" # views of views, regions, strides that overlap, from part to part
done
verify "$root/tests/models/dynamic_rows" # sizes that a run tells: whole, for the one that takes all of it

# Who runs how much, and why not more; the same out of the cache.
export AOT_CACHE_DIR=$PWD/cache
for cache in miss hit; do
  status 0 "$aothost" run "$example/pipeline.yaml" --model "$models/gpt_tiny/train.pt2" --inputs random --json r.json -v
  says '^backends: example.npu [1-9][0-9]* nodes in [1-9][0-9]* parts; backend-cpu [1-9][0-9]* nodes in [1-9][0-9]* parts$'
  says '^example.npu leaves aten.layer_norm.default, 5 nodes: it has no kernel for this operator$'
  tr -d ' \n' < r.json > flat
  has flat '"backends":\[\{"backend":"example.npu","nodes":[1-9][0-9]*,"parts":[1-9][0-9]*,"left":\[\{"operator":'
  has flat "\"outcome\":\"$cache\""
done

# A training step in one graph, in three, and in micro steps: what backend-cpu learns alone.
cat > train.yaml <<Y
aot: 1
vars: {first: example.npu}
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: "\${first}"}, {use: backend-ref, as: rest}]
run:
  train: {steps: 3, lr: 0.01, seed: 4, log-every: 1, data: {tokens: text.bin}, checkpoint: last.st}
Y
yes 'the quick brown fox jumps over the lazy dog' | head -200 | tr 'a-z \n' '\001-\034' > text.bin
losses() { grep '^step' out | sed 's/  lr.*//'; }
train() { # NAME FLAGS..
  name=$1; shift
  status 0 "$aothost" run train.yaml --set vars.first=backend-ref "$@"; losses > alone
  status 0 "$aothost" run train.yaml "$@"; losses > both
  has both 'step 3/3'
  cut -c1-19 alone > a; cut -c1-19 both > b # "step 3/3  loss 4.46": three digits
  same a b
}
train one
train three --set run.train.step=three-graphs
train micro --set run.train.accumulate=2 --set run.train.clip-norm=1.0
train strict --set run.device=strict

# The same backend twice: all is the first one's, and bytes are equal to those of one.
cat > same.yaml <<Y
aot: 1
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-cpu}, {use: backend-cpu, as: again}]
Y
sed 's/, {use: backend-cpu, as: again}//' same.yaml > single.yaml
for p in same single; do
  status 0 "$aothost" run $p.yaml --model "$models/gpt_tiny/train.pt2" --inputs random --outputs $p.st
done
same same.st single.st

# What is wrong is told at its line.
sed 's/, as: again//' same.yaml > twice.yaml
status 2 "$aothost" check twice.yaml
says 'duplicate backend name'
sed 's/{use: autograd}, {use: partition-mincut}, {use: backend-cpu}/{use: backend-cpu}, {use: autograd}/' same.yaml > between.yaml
status 2 "$aothost" check between.yaml
says 'a backend must be the last stage or be followed by another backend'
status 2 "$aothost" verify "$example/pipeline.yaml" --model "$models/gpt_tiny/train.pt2" --expect "$models/gpt_tiny/expected.safetensors" \
  --set vars.rest=example.npu
says 'duplicate backend name'
sed "s/use: \${rest}/use: example.npu\n    as: second/" "$example/pipeline.yaml" > alone.yaml
status 2 "$aothost" run alone.yaml --model "$models/gpt_tiny/train.pt2" --inputs random
says 'backend example.npu and the backends before it do not support'
says 'reason: it has no kernel for this operator'

# A backend that fails when it is asked, compiles or loads is the one that is told of.
fails() { # STATUS SAYS SED: the example, changed
  mkdir -p changed
  sed "$3" "$example/npu.c" > changed/npu.c
  cmp -s changed/npu.c "$example/npu.c" && complain "nothing is changed by $3"
  $cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden $flags -I prefix/include changed/npu.c -o changed/npu.so -lm || exit 1
  AOT_PLUGIN_PATH=$PWD/changed status $1 "$aothost" run "$example/pipeline.yaml" --model "$models/mlp/train.pt2" --inputs random --no-cache
  says "$2"
  says 'pipeline.yaml:12:[0-9]+: note: stage example.npu failed'
}
fails 2 'no room today' 's/^  return sink->write(sink, s, s->nbytes);/  return fail(u, ctx, AOT_E_EXHAUSTED, "no room today");/'
fails 3 'contract violation by plugin example.npu .* from query' 's/AOT_TRY(sink->put(sink, &v));/return AOT_E_INTERNAL;/'
fails 2 'it computes on the CPU' 's/  if (!work)/  if (work)/'

# A backend that the pipeline prefers and that runs nothing was not verified: the others computed all of it.
sed 's/{"aten\./{"none./' "$example/npu.c" > changed/npu.c
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden $flags -I prefix/include changed/npu.c -o changed/npu.so -lm || exit 1
AOT_PLUGIN_PATH=$PWD/changed status 1 "$aothost" verify "$example/pipeline.yaml" --model "$models/mlp/train.pt2" \
  --expect "$models/mlp/expected.safetensors" --json v.json
says '^7 of 7 keys agree'
says '^backends: example.npu 0 nodes in 0 parts; backend-cpu [1-9][0-9]* nodes in [1-9][0-9]* parts$'
says 'error: backend example.npu runs no node, so nothing of it was verified'
tr -d ' \n' < v.json > flat
has flat '"backends":\[\{"backend":"example.npu","nodes":0,'
has flat '"ok":false,"n_keys":7,"n_ok":7'
AOT_PLUGIN_PATH=$PWD/changed status 0 "$aothost" run "$example/pipeline.yaml" --model "$models/mlp/train.pt2" --inputs random
says 'warning: backend example.npu runs no node'
# one that stands behind another that runs all is no matter; one alone runs all
status 0 "$aothost" verify same.yaml --model "$models/mlp/train.pt2" --expect "$models/mlp/expected.safetensors"
says '^backends: backend-cpu [1-9][0-9]* nodes in [1-9][0-9]* parts?; again 0 nodes in 0 parts$'
status 0 "$aothost" verify single.yaml --model "$models/mlp/train.pt2" --expect "$models/mlp/expected.safetensors" --json v.json
says '^backends: backend-cpu [1-9][0-9]* nodes$'
tr -d ' \n' < v.json > flat
has flat '"backends":\[\{"backend":"backend-cpu","nodes":[1-9][0-9]*,"parts":1,'

# A program of parts is a program like any other: it prints, and reads back to the same text.
status 0 "$aothost" run "$example/pipeline.yaml" --model "$models/mlp/train.pt2" --inputs random --dump-dir d
part=$(ls d/*.assign.ir)
has "$part" '^graph @forward_part1 .*part \{'
has "$part" 'aot.part.default @forward_part1, "'
status 0 "$aothost" opt "$part" -o again.ir
same "$part" again.ir
status 0 "$aothost" inspect "$part"
says '^graph forward_part1: part, '
says '^  example.npu +[1-9][0-9]* nodes in [1-9][0-9]* parts$'
says '^  backend-cpu +[1-9][0-9]* nodes in [1-9][0-9]* parts$'
finish
