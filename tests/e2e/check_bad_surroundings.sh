#!/bin/sh
# A full disk, folders that cannot be written or read, signals, other processes, no compiler, no home: either the run goes on (with a
# warning where something is lost) or it ends in order. No half file, ever.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bad.sh"
m=$models/mlp; cp "$m/train.pt2" m.pt2; chmod 644 m.pt2
cache=$dir/cache; mkdir "$cache"
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG XDG_CACHE_HOME
export AOT_CACHE_DIR="$cache" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
skip() { echo "skipped: $*"; }
call() { "$aothost" run "$root/pipelines/inference.yaml" --model m.pt2 "$@"; }
verify() { "$aothost" verify "$root/pipelines/verify.yaml" --model m.pt2 --expect "$m/expected.safetensors" "$@"; }
cat > train.yaml <<'YAML'
aot: 1
vars: {backend: backend-cpu}
stages:
  - use: functionalize
  - use: autograd
  - use: partition-mincut
  - use: ${backend}
run:
  train: {steps: 4, log-every: 0}
YAML
train() { "$aothost" run train.yaml --model m.pt2 "$@"; }
status 0 train --json right.json; grep last_loss right.json > right # and the generated code is in the cache

# ---- places that take no file ----
full='No space left on device'
refuse 2 "$full" '/dev/full' call --outputs /dev/full
refuse 2 "$full" '/dev/full' "$aothost" opt m.pt2 -o /dev/full
refuse 2 "$full" '/dev/full' verify --json /dev/full
refuse 2 "$full" '/dev/full' verify --trace /dev/full
refuse 2 "$full" '/dev/full' train --set run.train.checkpoint=/dev/full
for command in "opt m.pt2" "inspect m.pt2" "schema" "plugins" "verify '$root/pipelines/verify.yaml' --model m.pt2 --expect '$m/expected.safetensors' --json -"; do
  refuse 2 'cannot write' 'standard output' sh -c "'$aothost' $command > /dev/full"
done
for f in no/such/folder/o .; do
  refuse 2 'cannot' "$f" "$aothost" opt m.pt2 -o $f
  refuse 2 'cannot be written to' '--outputs' call --outputs $f
  refuse 2 'the checkpoint cannot be written to' 'run.train.checkpoint:1:1' train --set run.train.checkpoint=$f
  grep -q 'step 1' out && complain "trained although the checkpoint has no place"
  refuse 2 'cannot write' "$f" verify --json $f
done
# a limit on the size of files: the write fails, the process lives, what was there stays
echo old > o.ir; cp o.ir old.ir
refuse 2 'File too large' 'o.ir' sh -c "ulimit -f 4; '$aothost' opt '$models/gpt_tiny/train.pt2' -o o.ir"; same o.ir old.ir
cp m.pt2 o.st; refuse 2 'File too large' 'o.st' sh -c "ulimit -f 2; '$aothost' run train.yaml --model '$models/gpt_tiny/train.pt2' --set run.train.checkpoint=o.st --set vars.backend=backend-ref"; same o.st m.pt2
rm -f o.ir old.ir o.st
# a real full disk, where a user may mount one
cat > small_disk.sh <<END
mkdir disk && mount -t tmpfs -o size=64k tmpfs disk && echo mounted > mounted || exit 9
head -c 60000 /dev/zero > disk/filler
"$aothost" run train.yaml --model m.pt2 --set run.train.checkpoint=disk/ck.st > out 2>&1
echo \$? > checkpoint.status; ls -A disk > checkpoint.left
AOT_CACHE_DIR=\$PWD/disk/cache "$aothost" run train.yaml --model m.pt2 > out2 2>&1
echo \$? > cache.status
