#!/bin/sh
# check_disk.sh AOTHOST FAILING ROOT BACKEND [EACH]: training that resumes a checkpoint and replaces it, with an empty cache, while
# each call that opens, writes, syncs, renames or closes a file fails once: no space, an input-output error, a short write (of EACH
# every EACH-th, each error). The checkpoint is the old or the new one, whole; the cache holds nothing broken; nothing temporary
# stays; and a run after it does what it would have done.
set -u
aothost=$1; failing=$2; root=$3; backend=$4; each=${5:-1}; model=$root/tests/fixtures/models/mlp/train.pt2
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG AOT_CACHE
mkdir made
# Compiles each text once: the code that the backend generates is the same every time.
cat > cc <<'END'
#!/bin/sh
case "$*" in *--version*) echo "kept code"; exit 0 ;; esac
while [ $# -gt 0 ]; do case $1 in -o) out=$2; shift ;; *.c) in=$1 ;; esac; shift; done
name=$(dirname "$0")/made/$(cksum < "$in" | tr ' ' -).so
[ -f "$name" ] || { gcc -O1 -march=native -fPIC -shared -w -o "$name.$$" "$in" -lm && mv "$name.$$" "$name"; } || exit 1
cp "$name" "$out"
END
chmod 755 cc
cat > p.yaml <<'END'
aot: 1
vars: {backend: backend-ref}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: "${backend}"}]
run: {train: {steps: 2, log-every: 0, checkpoint: ck.st}}
END
options=
[ "$backend" = backend-cpu ] && options="--set stages.backend-cpu.threads=1 --set stages.backend-cpu.compiler=$dir/cc"
train() { "$@" AOT_CACHE_DIR="$dir/cache" "$aothost" run p.yaml --model "$model" --set vars.backend="$backend" $options $more > out 2>&1; }
fresh() { rm -rf cache; mkdir -m 700 cache; cp old.st ck.st; }
# The old or the new one; without generated code, of which a warning tells, numbers are rounded otherwise, and it loads.
is_whole() {
  cmp -s ck.st old.st || cmp -s ck.st new.st && return 0
  grep -q '^warning: ' out || return 1
  "$aothost" run p.yaml --model "$model" --no-cache --set run.train.resume=ck.st --set run.train.checkpoint=other.st > out.whole 2>&1 &&
    grep -q 'nothing to do' out.whole
}
bad=0
fail() { echo "FAILED: call $n, error $error: $*"; sed -n 1,6p out; bad=$((bad + 1)); }

mkdir -m 700 cache
more='--set run.train.steps=1'; train env || { cat out; exit 1; }
mv ck.st old.st
more='--set run.train.resume=ck.st'; fresh; train env || { cat out; exit 1; }
mv ck.st new.st
fresh; train env LD_PRELOAD="$failing" FAIL=disk FAIL_COUNT=count || { cat out; exit 1; }
n_calls=$(cat count); n=$each; n_tried=0
while [ "$n" -le "$n_calls" ]; do
  for error in 28 5 0; do # ENOSPC, EIO, a short write
    n_tried=$((n_tried + 1))
    fresh; train timeout 100 env LD_PRELOAD="$failing" FAIL=disk FAIL_AT="$n" FAIL_ERRNO="$error"; status=$?
    case $status in
      0) cmp -s ck.st new.st || grep -q '^warning: ' out || fail "status 0 without the checkpoint" ;;
      2 | 3) grep -q 'error: ' out || fail "status $status without a message" ;;
      *) fail "status $status" ;;
    esac
    grep -qE 'SIG[A-Z]+|Segmentation' out && fail "a crash"
    is_whole || fail "the checkpoint is neither the old nor the new one"
    left=$(find . -name '*.tmp-*' -o -name 'work-*')
    [ -z "$left" ] || fail "left behind: $left"
    cp old.st ck.st
    train env || fail "the next run, over what that one left: status $?"
    cmp -s ck.st new.st || fail "another checkpoint of the next run"
    grep -q 'is made again' out && fail "a broken entry in the cache"
  done
  n=$((n + each))
done
echo "$backend: $n_tried failures in $n_calls calls, $bad without an orderly end"
[ "$n_tried" -ge 9 ] && [ "$bad" = 0 ]
