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
refuse 2 'it is a device, not a regular file' '/dev/full' train --set run.train.checkpoint=/dev/full
for command in 'opt m.pt2' 'inspect m.pt2' schema plugins "verify '$root/pipelines/verify.yaml' --model m.pt2 --expect '$m/expected.safetensors' --json -"; do
  refuse 2 'cannot write' 'standard output' sh -c "'$aothost' $command > /dev/full"
done
for f in no/such/folder/o .; do
  refuse 2 'cannot' "$f" "$aothost" opt m.pt2 -o $f
  refuse 2 'the outputs cannot be written to' '--outputs:1:1' call --outputs $f
  refuse 2 'the checkpoint cannot be written to' 'run.train.checkpoint:1:1' train --set run.train.checkpoint=$f --set run.train.log-every=1
  grep -q '^step' out && complain "trained although the checkpoint has no place"
  refuse 2 'cannot write' "$f" verify --json $f
done
# a limit on the size of files: the write fails, the process lives, what was there stays
echo old > o.ir; cp o.ir old.ir; cp m.pt2 o.st
refuse 2 'File too large' 'o.ir' sh -c "ulimit -f 4; '$aothost' opt '$models/gpt_tiny/train.pt2' -o o.ir"; same o.ir old.ir
refuse 2 'File too large' 'o.st' sh -c "ulimit -f 2; '$aothost' run train.yaml --model '$models/gpt_tiny/train.pt2' --set run.train.checkpoint=o.st --set vars.backend=backend-ref"
same o.st m.pt2
rm -f o.ir old.ir o.st
# a real full disk, where a user may mount one
cat > small_disk.sh <<DISK
mkdir disk && mount -t tmpfs -o size=64k tmpfs disk && echo yes > mounted || exit 9
head -c 60000 /dev/zero > disk/filler
"$aothost" run train.yaml --model m.pt2 --set run.train.checkpoint=disk/ck.st > out 2>&1
echo \$? > checkpoint.status; ls -A disk > checkpoint.left
AOT_CACHE_DIR=\$PWD/disk/cache "$aothost" run train.yaml --model m.pt2 > cache.out 2>&1
echo \$? > cache.status; ls -A disk/cache/* | grep -vE "^(disk/.*:|.*\\.version|)\$" > cache.left
DISK
unshare -Urm sh small_disk.sh > /dev/null 2>&1 # the mount is gone with the name space
if [ -f mounted ]; then
  [ "$(cat checkpoint.status)" = 2 ] || complain "a checkpoint on a full disk: status $(cat checkpoint.status)"
  says "$full"
  [ "$(cat checkpoint.left)" = filler ] || complain "left on the full disk: $(cat checkpoint.left)"
  cp cache.out out
  [ "$(cat cache.status)" = 0 ] || { complain "a cache on a full disk: status $(cat cache.status)"; tail -3 out; }
  says '^warning: '; [ -z "$(cat cache.left)" ] || complain "left in a cache on the full disk: $(cat cache.left)"
else
  skip "no small disk can be mounted here"
fi
rm -rf disk mounted small_disk.sh cache.out ./*.status ./*.left
# somebody else's link under the temporary name is not followed
echo precious > victim
status 0 sh -c "ln -s victim o.ir.tmp-\$\$; exec '$aothost' opt m.pt2 -o o.ir"
[ "$(cat victim)" = precious ] || complain "wrote through a link under the temporary name"
rm -f victim o.ir

# ---- little address space: an error, or fewer threads, and never a library that tries for ever ----
if (ulimit -v 600000; "$aothost" plugins > /dev/null 2>&1); then # not under a sanitizer, which takes terabytes
  for kib in 120000 200000; do
    refuse 2 'OpenBLAS needs 200 MiB of address space' 'ulimit -v' sh -c "ulimit -v $kib; '$aothost' run train.yaml --model m.pt2"
  done
  for kib in 300000 500000 900000 1400000; do
    status 0 sh -c "ulimit -v $kib; '$aothost' verify '$root/pipelines/verify.yaml' --model '$models/gpt_tiny/train.pt2' \
      --expect '$models/gpt_tiny/expected.safetensors' --set vars.backend=backend-cpu --no-cache"
    says 'keys agree'
  done
fi

# ---- modes of files ----
mkdir closed readonly && cp m.pt2 closed.pt2 && chmod 000 closed closed.pt2 && chmod 555 readonly
if can_be_user; then
  refuse 2 'Permission denied' 'cannot open closed.pt2' as_user "$aothost" inspect closed.pt2
  refuse 2 'Permission denied' '--plugin-dir closed' as_user "$aothost" plugins --plugin-dir closed
  status 0 as_user env AOT_PLUGIN_PATH="$dir/closed" "$aothost" plugins -v; says 'AOT_PLUGIN_PATH .*/closed \(Permission denied\)'
  refuse 2 'Permission denied' 'readonly/o.ir' as_user "$aothost" opt m.pt2 -o readonly/o.ir
  refuse 2 "$full" '/dev/full' as_user env AOT_CACHE_DIR=/dev/null/cache "$aothost" run "$root/pipelines/inference.yaml" --model m.pt2 --outputs /dev/full
  status 0 as_user env AOT_CACHE_DIR="$dir/readonly" "$aothost" run train.yaml --model m.pt2
  mkdir open && chmod 777 open # what others can write to might hold their code
  status 0 as_user env AOT_CACHE_DIR="$dir/open" "$aothost" run train.yaml --model m.pt2
  [ -z "$(ls open)" ] || complain "generated code in a folder that everybody may write to"
else
  skip "modes of files: root, and no other user to be"
fi
chmod 755 closed readonly; rm -rf closed closed.pt2 readonly open

# ---- the cache of generated code ----
loss_is_right() { grep last_loss "$1" | cmp -s - right || { complain "another loss: $2"; grep last_loss "$1"; }; }
for n in 0 1000 9000 15000; do # cut short when a machine went down: made again
  for so in "$cache"/units/*.so; do head -c $n "$so" > t; cp t "$so"; done
  status 0 train --json got.json; loss_is_right got.json "a cache cut to $n bytes"; no_report train
done
for so in "$cache"/units/*.so; do echo garbage > "$so"; done; status 0 train
rm -rf "$cache" t; mkdir "$cache" # several at once, nothing there yet
racers=
for i in 1 2 3; do train --json race$i.json > race$i.out 2>&1 & racers="$racers $!"; done
for pid in $racers; do wait "$pid" || complain "one of three that share a cache: status $?"; done
for i in 1 2 3; do loss_is_right race$i.json "one of three that share a cache"; done
ls "$cache" "$cache/units" | grep -vE '\.(so|version)$|^(compiled|units|.*:|)$' > t && complain "left in the cache: $(cat t)"
rm -f t race?.json race?.out
# no folder to keep it, no folder to make it, no home, no compiler
goes_on() {
  what=$1; shift; rm -f got.json
  status 0 "$@" "$aothost" run train.yaml --model m.pt2 --json got.json; no_report "$what"
  has got.json '"done": 4'
}
goes_on 'an unusable cache' env AOT_CACHE_DIR=/dev/null/cache
goes_on 'no cache and no folder for temporary files' env AOT_CACHE_DIR=/dev/null/cache TMPDIR=/dev/null
says '^warning: no folder for generated code'; says 'in stage backend-cpu \(train\.yaml:7\)'
goes_on 'no home' env -u HOME -u AOT_CACHE_DIR
goes_on 'a home that is none' env -u AOT_CACHE_DIR HOME=/dev/null
goes_on 'no compiler in PATH' env PATH=/dev/null "$(command -v env)" # env itself is still found
says '^warning: the C compiler cc cannot be used: No'; says 'hint: install a C compiler'
for compiler in false ./m.pt2 'sh -c'; do
  status 0 train --set "stages.backend-cpu.compiler=$compiler"; says '^warning: the C compiler .* cannot be used'
done
rm -f got.json

# ---- signals ----
# until TEST...: waits for another process to get there, a minute at most
until_true() { n=0; until "$@" 2> /dev/null; do n=$((n + 1)); [ $n -lt 600 ] || { complain "never: $*"; return; }; sleep 0.1; done; }
forever() { exec "$aothost" run train.yaml --model m.pt2 --set run.train.steps=1000000000 "$@"; }
for signal in INT TERM HUP; do
  forever --set run.train.log-every=1 --set run.train.checkpoint=ck.st > run.out 2>&1 & pid=$!
  until_true grep -q '^step [0-9]' run.out
  kill -s $signal $pid; wait $pid; got=$?
  [ $got = 0 ] || complain "SIG$signal while training: status $got"
  has run.out '^interrupted after step'
  status 0 train --set run.train.resume=ck.st --set run.train.steps=1; says 'nothing to do'
  rm -f ck.st run.out
done
# a terminal that goes away tells so more than once; nohup does not care
forever --set run.train.log-every=1 --set run.train.checkpoint=ck.st > run.out 2>&1 & pid=$!
until_true grep -q '^step [0-9]' run.out
kill -s HUP $pid; kill -s HUP $pid 2> /dev/null; wait $pid; got=$?
[ $got = 0 ] || complain "SIGHUP twice while training: status $got"
test -f ck.st || complain "SIGHUP twice: no checkpoint"
rm -f ck.st run.out
(trap '' HUP; forever --set run.train.log-every=1 --set run.train.checkpoint=ck.st > run.out 2>&1) & pid=$!
until_true grep -q '^step [0-9]' run.out
kill -s HUP $pid
until_true grep -q '^step 100/' run.out
kill -s TERM $pid; wait $pid
has run.out '^interrupted after step'
rm -f ck.st run.out
# nobody reads the log: it trains on to the end, and the checkpoint is there
{ "$aothost" run train.yaml --model m.pt2 --set run.train.steps=200 --set run.train.log-every=1 --set run.train.checkpoint=ck.st \
    --json got.json 2> err; echo $? > got; } | head -n 1 > run.out
[ "$(cat got)" = 2 ] || complain "a log that nobody reads: status $(cat got)"
[ -s err ] && { complain 'a log that nobody reads: complaints'; cat err; }
has got.json '"done": 200'
status 0 train --set run.train.resume=ck.st --set run.train.steps=200; says 'nothing to do'
rm -f ck.st run.out got got.json err
for pause in 0.02 0.05 0.11; do # killed while it writes checkpoint after checkpoint: the file is whole
  forever --set 'run.train.checkpoint={path: ck.st, every: 1}' > run.out 2>&1 & pid=$!
  until_true test -f ck.st
  sleep $pause; kill -s KILL $pid; wait $pid 2> /dev/null
  status 0 train --set run.train.resume=ck.st --set run.train.steps=1; says 'nothing to do'
  : > ck.st.tmp-1 # at the latest now something is left
  status 0 train --set run.train.checkpoint=ck.st --set run.train.steps=1
  [ "$(ls ck.st*)" = ck.st ] || complain "beside a checkpoint after the next one: $(ls ck.st*)"
  rm -f ck.st
done
finish
