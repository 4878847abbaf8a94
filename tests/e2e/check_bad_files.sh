#!/bin/sh
# Files that are not what their names promise: links that lead elsewhere, pipes that no process writes, devices without end, and
# outputs that are an input. Nothing is written through a link, nothing waits, and no input is lost.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bad.sh"
m=$models/mlp; cp "$m/train.pt2" m.pt2; cp "$m/expected.safetensors" e.st; chmod 644 m.pt2 e.st
cache=$dir/cache; mkdir "$cache"
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG AOT_CACHE
export AOT_CACHE_DIR="$cache" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
cat > train.yaml <<'YAML'
aot: 1
vars: {backend: backend-cpu}
stages:
  - use: functionalize
  - use: autograd
  - use: partition-mincut
  - use: ${backend}
run:
  train: {steps: 2, log-every: 0}
YAML
soon() { timeout 100 "$@"; }
train() { soon "$aothost" run train.yaml --model m.pt2 "$@"; }
verify() { soon "$aothost" verify "$root/pipelines/verify.yaml" --model m.pt2 --expect e.st -v "$@"; }
intact() { [ "$(cat victim)" = precious ] || { complain "written through a link: $*"; printf precious > victim; }; }
printf precious > victim
mkfifo pipe

# ---- the compile cache: what is no file of ours is replaced, and where it leads to stays ----
status 0 verify; says 'cache: miss'
entry=$(ls "$cache"/compiled/*.aotc)
for trap in 'ln -s ../../victim' 'ln -s /dev/zero' 'ln -s nowhere' mkfifo; do
  rm -f "$entry"; $trap "$entry"
  status 0 verify; says 'cache: miss'; intact "$trap"
  [ -f "$entry" ] && [ ! -L "$entry" ] || complain "the entry is no regular file after '$trap'"
  status 0 verify; says 'cache: hit'
done
status 0 soon "$aothost" cache verify
for trap in 'ln -s ../../victim' mkfifo; do # an entry that no run needs goes with the next one that is written
  $trap "$cache/compiled/0123.aotc"
  rm "$entry"; status 0 verify; intact "$trap"
  { [ -e "$cache/compiled/0123.aotc" ] || [ -L "$cache/compiled/0123.aotc" ]; } && complain "left in the cache: $trap"
done
rm -rf "$cache/compiled"; mkdir mine; printf keep > mine/1.aotc; ln -s ../mine "$cache/compiled" # the folder itself
status 0 verify; says 'cache: bypassed \(no-folder\)'
[ "$(ls mine)" = 1.aotc ] || complain "written into a folder behind a link: $(ls mine)"
rm -rf "$cache" mine; mkdir "$cache"

# ---- generated code and what is known of the compiler ----
status 0 train --no-cache
for trap in 'ln -s ../../victim' mkfifo; do
  for f in "$cache"/units/*; do rm -rf "$f"; $trap "$f"; done
  status 0 train --no-cache; intact "units: $trap"; no_report train
  for f in "$cache"/units/*.so; do [ -f "$f" ] && [ ! -L "$f" ] || complain "$f is no regular file after '$trap'"; done
done

# ---- names that the program chooses in a folder that it is given ----
mkdir dumps; for n in 01.functionalize 02.autograd; do ln -s ../victim dumps/$n.ir; done
status 0 verify --dump-dir dumps; intact dumps
[ -L dumps/01.functionalize.ir ] && complain "a dump is still a link"
cat > neg.ir <<'IR'
aot 1
properties imported
leaf 0 user_input 0 "x" : f32[2]
graph @main forward {
  in %x = user_input 0 : f32[2]
  %y : f32[2] = aten.neg.default %x
  out user_output 0 = %y
}
IR

# ---- pipes and devices in the place of a file ----
for f in pipe /dev/zero; do
  what='it is a device'; [ $f = pipe ] && what='it is a named pipe'
  refuse 2 "$what" $f soon "$aothost" inspect $f
  refuse 2 "$what" $f soon "$aothost" check $f
  refuse 2 "$what" $f train --model $f
  refuse 2 "$what" $f train --set run.train.data=$f
  refuse 2 "$what" $f soon "$aothost" run train.yaml --model "$models/gpt_tiny/train.pt2" --set vars.backend=backend-ref \
    --set "run.train.data={tokens: $f, dtype: u8}"
  refuse 2 "$what" $f train --set run.train.resume=$f
  refuse 2 "$what" $f soon "$aothost" run "$root/pipelines/inference.yaml" --model m.pt2 --inputs $f --outputs o.st
  refuse 2 "$what" $f soon "$aothost" verify "$root/pipelines/verify.yaml" --model m.pt2 --expect $f
  refuse 2 "$what" $f train --locked $f
  refuse 2 "$what" $f train --require-signed $f
  refuse 2 'it is ' "$f" train --set run.train.checkpoint=$f
  refuse 2 "$what" $f soon "$aothost" ops --cases $f --backend backend-ref
  printf 'aot: 1\ninclude: %s\nstages: [{use: backend-ref}]\n' $f > include.yaml
  refuse 2 "$what" "include.yaml:2:10: error: cannot read '$f'" soon "$aothost" check include.yaml
  mkdir bundle; ln -s "$(realpath $f)" bundle/info.json
  refuse 2 "$what" bundle/info.json soon "$aothost" replay bundle
  rm -r bundle include.yaml
done
refuse 2 'not a folder' pipe train --plugin-dir pipe
mkdir plugins; mkfifo plugins/p.so; ln -s /dev/zero plugins/z.so
status 0 train --plugin-dir plugins
status 0 soon "$aothost" plugins --plugin-dir plugins -v; says 'it is a named pipe'; says '/dev/zero: writable by everyone'
refuse 2 'it is a named pipe that no process reads' pipe soon "$aothost" opt m.pt2 -o pipe
refuse 2 'it is a named pipe that no process reads' pipe train --json pipe
printf 'aot: 1\n' | status 0 soon "$aothost" check /dev/stdin # a pipe between processes is one that ends
soon cat pipe > got & status 0 "$aothost" opt neg.ir -o pipe; wait $!; has got 'aten.neg.default' # and one that is read is written

# ---- outputs that are inputs: refused by `check`, before anything runs ----
cp m.pt2 m.copy; cp e.st e.copy; cp train.yaml train.copy
ln -s m.pt2 link.pt2; ln m.pt2 hard.pt2; mkdir -p sub
check() { "$aothost" check train.yaml --model m.pt2 "$@"; }
for name in m.pt2 ./m.pt2 "$dir/m.pt2" sub/../m.pt2 link.pt2 hard.pt2; do
  refuse 2 'the checkpoint would be written over the model' run.train.checkpoint:1:1 check --set run.train.checkpoint=$name
  refuse 2 'the outputs would be written over the model' outputs check --inputs random --outputs $name
  refuse 2 'written over' "$name" check --json $name
  refuse 2 'written over' "$name" train --trace $name
  refuse 2 'written over' "$name" "$aothost" inspect m.pt2 --json $name
  refuse 2 'written over' "$name" "$aothost" opt m.pt2 -o $name
done
refuse 2 'the checkpoint would be written over the data' run.train.checkpoint:1:1 check --set run.train.data=e.st --set run.train.checkpoint=e.st
refuse 2 'the checkpoint would be written over a file of the pipeline' run.train.checkpoint check --set run.train.checkpoint=train.yaml
refuse 2 'the outputs would be written over the inputs' outputs check --inputs e.st --outputs e.st
refuse 2 'the outputs would be written over the checkpoint' outputs check --inputs e.st --outputs o.st --set run.train.checkpoint=./o.st
refuse 2 'written over' e.st verify --json e.st
refuse 2 'written over' m.pt2 verify --json m.pt2
refuse 2 'written over' o.json train --json o.json --trace ./o.json
same m.pt2 m.copy; same e.st e.copy; same train.yaml train.copy

# ---- what a checkpoint cannot hold is said before the first step ----
cat > complex.ir <<'IR'
aot 1
properties imported
leaf 0 parameter "w" : f32[2] grad data "0000803f00000040"
leaf 1 buffer "spectrum" : c128[1] data "000000000000f03f0000000000000040"
leaf 2 user_input 0 "x" : f32[2]
graph @main forward {
  in %w = parameter 0 : f32[2]
  in %b = buffer 1 : c128[1]
  in %x = user_input 2 : f32[2]
  %y : f32[2] = aten.mul.Tensor %w, %x
  %s : f32[] = aten.sum.default %y
  out user_output 0 = %s
}
IR
complex() { soon "$aothost" run train.yaml --model complex.ir --set run.train.log-every=1 --set vars.backend=backend-ref "$@"; }
status 0 complex; says '^step 2/2'
refuse 2 'a checkpoint cannot hold "buffer.spectrum", which is c128' run.train.checkpoint:1:1 complex --set run.train.checkpoint=c.st
grep -q '^step' out && complain "trained although the checkpoint cannot be written"

# ---- a checkpoint that goes on in the same file ----
status 0 train --set run.train.checkpoint=ck.st
status 0 train --set run.train.checkpoint=ck.st --set run.train.resume=ck.st --set run.train.steps=3 # goes on, in the same file
finish
