#!/bin/sh
# check_memory.sh AOTHOST FAILING ROOT BACKEND MODEL [EACH]: one training step of a model, with each allocation of the host and of
# plugins failing once (of EACH only every EACH-th): a status and a message every time, no crash, no hang, no leak, and where the run goes on
# all the same, the same checkpoint.
set -u
aothost=$1; failing=$2; root=$3; backend=$4; model=$root/tests/fixtures/models/$5/train.pt2; each=${6:-1}
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG
[ -n "${AOT_CACHE_DIR:-}" ] || export AOT_CACHE_DIR="$dir" # generated code of other tests is welcome
cat > p.yaml <<'END'
aot: 1
vars: {backend: backend-ref}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: "${backend}"}]
run: {train: {steps: 1, log-every: 0, checkpoint: got.st}}
END
run() { "$@" "$aothost" run p.yaml --model "$model" --set vars.backend="$backend" $threads --no-cache > out 2>&1; }
threads=
[ "$backend" = backend-cpu ] && threads='--set stages.backend-cpu.threads=1' # a fork has no others
run env LD_PRELOAD="$failing" FAIL=none FAIL_LEAKS=left || { echo "FAILED: without a failure"; cat out; exit 1; }
mv got.st right.st
run env LD_PRELOAD="$failing" FAIL=memory FAIL_FORK=results FAIL_SAME=got.st:right.st FAIL_LEAKS=left FAIL_EACH="$each" FAIL_SECONDS=60 ||
  { echo "FAILED: the process whose children fail"; cat out; exit 1; }
cmp -s got.st right.st || { echo "FAILED: another checkpoint"; exit 1; }

# "N ok STATUS MESSAGE", else what is wrong and the callers
n=$(grep -c '^[0-9]' results)
n_bad=$(grep '^[0-9]' results | grep -cv '^[0-9]* ok ')
sed -n '/^[0-9]* ok /d;p' results | head -40 | while read -r line; do
  case $line in
    [0-9]*' '*) echo "allocation $line" ;;
    */*+0x*) echo "    $(addr2line -f -s -p -e "${line%+*}" "${line##*+}" 2> /dev/null || echo "$line")" ;;
  esac
done
echo "$5, $backend: $n allocations of $(tail -n 1 results | sed 's/ .*//'), $n_bad without an orderly end"
[ "$n" -ge 20 ] && [ "$n_bad" = 0 ]
