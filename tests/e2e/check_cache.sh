#!/bin/sh
# The compile cache as a user meets it: what is kept is found again and runs alike; whatever the result depends on makes another
# entry, with the reason; damage, other processes and a full folder cost a compile, never a result.
. "$(dirname "$0")/lib.sh"
m=$models/mlp; cp "$m/train.pt2" m.pt2; chmod 644 m.pt2
unset AOT_CACHE AOT_CACHE_LIMIT
export AOT_CACHE_DIR="$dir/cache" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
entries() { ls "$AOT_CACHE_DIR/compiled" 2>/dev/null | grep -c '\.aotc$'; }
count() { [ "$(entries)" = "$1" ] || complain "$(entries) entries instead of $1"; }
verify() { "$aothost" verify "$root/pipelines/verify.yaml" --model m.pt2 --expect "$m/expected.safetensors" -v "$@"; }
explain() { "$aothost" cache explain "$root/pipelines/verify.yaml" --model m.pt2 "$@"; }
fresh() { rm -rf "$AOT_CACHE_DIR"; }

# ---- a miss, then hits; the same numbers ----
status 0 explain; says 'miss: there is no entry yet'
status 0 verify; says 'cache: miss'; grep ' ok$' out > first; count 1
status 0 verify; says 'cache: hit'; grep ' ok$' out > second; same first second
status 0 explain; says 'hit: entry'
status 0 "$aothost" cache; says 'm\.pt2, .*verify\.yaml'
status 0 "$aothost" cache list --json - ; says '"damaged": 0'
status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model m.pt2 --expect "$m/expected.safetensors" --json report.json
has report.json '"outcome": "hit"'; has report.json '"cached": true'

# ---- a model file that was damaged after it was compiled is refused, as one that never was ----
size=$(stat -c %s m.pt2); cp m.pt2 whole.pt2
n_refused=0 # but for bytes that fill up, or that no program needs
for at in $((size / 4)) $((size / 3)) $((size / 2)) $((2 * size / 3)) $((3 * size / 4)); do
  byte=$(od -An -tu1 -j "$at" -N 1 whole.pt2)
  cp whole.pt2 m.pt2; printf "$(printf '\\%03o' $((byte ^ 4)))" | dd of=m.pt2 bs=1 seek="$at" conv=notrunc 2> /dev/null
  verify --no-cache > out 2>&1; as_new=$?
  status $as_new verify
  [ $as_new = 2 ] && n_refused=$((n_refused + 1)) && says 'm\.pt2'
done
[ $n_refused -ge 3 ] || complain "only $n_refused of 5 damaged files are refused"
cp whole.pt2 m.pt2; rm whole.pt2
status 0 verify; says 'cache: hit'; fresh; status 0 verify

# ---- training on a hit, and resuming, is training ----
cat > train.yaml <<'YAML'
aot: 1
vars: {steps: 6, decay: 0.01}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-ref}]
run: {train: {steps: "${steps}", optimizer: adamw, optimizer-with: {weight-decay: "${decay}"}, log-every: 0, checkpoint: c.safetensors}}
YAML
train() { "$aothost" run train.yaml --model m.pt2 "$@"; }
status 0 train --no-cache; mv c.safetensors right.safetensors
status 0 train --set vars.steps=3; status 0 train --set run.train.resume=c.safetensors -v; says 'cache: hit'
same c.safetensors right.safetensors
status 0 train -v; says 'compiled before; ready in'; same c.safetensors right.safetensors

# ---- what a result depends on ----
count 2
status 0 train --set vars.decay=0.02 -v; says 'cache: miss'; count 3
status 0 "$aothost" cache explain train.yaml --model m.pt2 --set vars.decay=0.03; says 'optimizer adamw: weight-decay: 0\.0[12] then, 0\.03 now'
status 0 train --set run.train.steps=2 --set run.train.lr=0.1 -v; says 'cache: hit' # not part of it
status 0 verify --set vars.partition=partition-mincut; says 'cache: miss'
cp "$models/gpt_tiny/train.pt2" other.pt2
status 0 "$aothost" cache explain "$root/pipelines/verify.yaml" --model other.pt2; says '  model: [0-9a-f]+ then, [0-9a-f]+ now'
mkdir plugins; cp "$(dirname "$aothost")"/../lib/aothost/*.so plugins/; printf 'x' >> plugins/autograd.so # another file, the same build
status 0 verify --plugin-dir plugins; says 'cache: hit'
if objcopy --remove-section .note.gnu.build-id plugins/autograd.so 2>/dev/null; then
  status 0 explain --plugin-dir plugins; says 'plugin autograd: [0-9a-f]+ then, [0-9a-f]+ now'
  status 0 verify --plugin-dir plugins; says 'cache: miss'
fi

# ---- reasons for doing without ----
count_before=$(entries)
status 0 verify --no-cache; says 'cache: bypassed \(off\)'
export AOT_CACHE=off; status 0 verify; says 'cache: bypassed \(off\)'; unset AOT_CACHE
status 0 verify --dump-dir dumps; says 'cache: bypassed \(dump\)'; [ -s dumps/01.functionalize.ir ] || complain "no dump"
mkdir shared
for mode in 777 770; do
  chmod $mode shared; AOT_CACHE_DIR=$dir/shared; status 0 verify --set vars.backend=backend-cpu; says 'cache: bypassed \(no-folder\)'
  [ -z "$(ls shared)" ] || complain "files in a folder that others may write to"
done
chmod 700 shared; mkdir -m 770 shared/units; status 0 verify --set vars.backend=backend-cpu # the folder of units alone is open
[ -z "$(ls shared/units)" ] || complain "code in a folder that others may write to"
status 2 "$aothost" cache clear; says 'no cache folder that belongs to this user alone'
if [ "$(id -u)" = 0 ]; then
  rm -r shared; mkdir -m 700 shared; chown 65534 shared; status 0 verify; says 'cache: bypassed \(no-folder\)'
fi
AOT_CACHE_DIR=$dir/cache
count "$count_before"

# ---- damage at every part is found, told and mended ----
fresh; status 0 verify; entry=$(ls "$AOT_CACHE_DIR"/compiled/*.aotc); size=$(stat -c %s "$entry"); cp "$entry" whole
for at in 0 8 12 16 24 63 64 100 200 1000 $((size / 2)) $((size - 1)); do
  cp whole "$entry"; printf '\377' | dd of="$entry" bs=1 seek="$at" conv=notrunc 2> /dev/null
  cmp -s whole "$entry" && continue
  status 1 "$aothost" cache verify; says '; the next run that needs it makes it again'
  status 0 verify; says 'cache: miss'; says 'is made again'
done
for size in 0 1 63 64 160 1000 $((size - 1)); do
  head -c "$size" whole > "$entry"; status 0 verify; says 'cache: miss'
done
status 0 verify; says 'cache: hit'
status 0 "$aothost" cache verify

# ---- other processes ----
fresh
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do verify > "many.$i" 2>&1 & done; wait
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do has "many.$i" 'keys agree'; done
count 1; status 0 verify; says 'cache: hit'; status 0 "$aothost" cache verify
fresh; i=0
while [ $i -lt 12 ]; do i=$((i + 1)); verify > /dev/null 2>&1 & pid=$!; sleep 0.00$i; kill -9 $pid 2> /dev/null; wait $pid 2> /dev/null; done
status 0 verify; says 'keys agree'; status 0 "$aothost" cache verify
: > "$AOT_CACHE_DIR/compiled/00.aotc.tmp-1"; status 0 verify --set vars.partition=partition-mincut; says 'cache: miss'
[ -z "$(ls "$AOT_CACHE_DIR"/compiled/*.tmp-* 2> /dev/null)" ] || complain "left by killed writers: $(ls "$AOT_CACHE_DIR"/compiled)"

# ---- bounded; cleared ----
fresh; export AOT_CACHE_LIMIT=1; status 0 verify; count 1; status 0 verify --set vars.partition=partition-mincut; count 1; unset AOT_CACHE_LIMIT
status 0 verify; count 2
status 0 "$aothost" cache clear --older-than 1; says 'removed 0 of 2'
key=$(basename "$(ls "$AOT_CACHE_DIR"/compiled/*.aotc | head -1)" .aotc)
status 0 "$aothost" cache clear "$key"; says 'removed 1 of 2'
status 0 "$aothost" cache clear; says 'removed 1 of 1'; count 0

# ---- what units keep is counted, bounded and cleared, too ----
code() { ls "$AOT_CACHE_DIR/units" 2> /dev/null | grep -c '^cpu-.*\.so$'; }
fresh; status 0 verify --set vars.backend=backend-cpu; [ "$(code)" = 1 ] || complain "$(code) units of code instead of 1"
status 0 "$aothost" cache; says 'kept by units: 2 files, [1-9]'
status 0 "$aothost" cache --json -; says '"units": \{'
unit=$(ls "$AOT_CACHE_DIR"/units/cpu-*.so); printf '\377' | dd of="$unit" bs=1 seek=2000 conv=notrunc 2> /dev/null
status 0 verify --set vars.backend=backend-cpu --no-cache; says 'keys agree'
mkdir "$AOT_CACHE_DIR/units/work-killed"; : > "$AOT_CACHE_DIR/units/work-killed/unit.c"
AOT_CACHE_LIMIT=1 status 0 verify --set vars.partition=partition-mincut; [ "$(code)" = 0 ] || complain "code outlives the limit"
[ ! -d "$AOT_CACHE_DIR/units/work-killed" ] || complain "a dead writer's folder stays"
status 0 verify --set vars.backend=backend-cpu
status 0 "$aothost" cache clear --older-than 1; says ', 0 of [12] files of units'
status 0 "$aothost" cache clear; says 'files of units'; [ -z "$(ls "$AOT_CACHE_DIR/units" "$AOT_CACHE_DIR/compiled" | grep -v :)" ] || complain "clear leaves files"

status 2 "$aothost" cache clear nothing; says "no entry begins with 'nothing'"
status 2 "$aothost" cache claer; says "did you mean 'clear'"
status 2 "$aothost" cache explain; says 'takes a pipeline'
finish
