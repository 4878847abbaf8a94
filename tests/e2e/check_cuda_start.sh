#!/bin/sh
# What backend-cuda keeps in the cache folder: a second start compiles and times nothing; damage, a file under another's name and a
# folder that cannot be written cost a compile, never a result.
. "$(dirname "$0")/lib.sh"
m=$models/gpt_tiny
unset AOT_CACHE AOT_CACHE_LIMIT
export AOT_CACHE_DIR="$dir/cache" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
verify() { # writes the numbers of the report to `json`
  status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$m/train.pt2" --expect "$m/expected.safetensors" --no-cache \
    --set vars.backend=backend-cuda --set run.device=cuda --json json "$@"
}
number() { tr -d ' \n' < json | sed -n "s/.*\"$1\":{\"value\":\([-0-9.e+]*\).*/\1/p" | sed 's/\.0$//'; }
is() { [ "$(number "$1")" = "$2" ] || complain "$1 is $(number "$1") instead of $2"; }
# Starts until none times a product any more: where that takes long, as under a sanitizer, a start leaves some for the next.
settle() {
  for _ in 1 2 3 4 5; do
    verify "$@"
    [ "$(number timed-products)" != 0 ] || return 0
  done
}
cubins() { find "$AOT_CACHE_DIR" -name 'cuda-*.cubin' | sort; }

verify
functions=$(number compiled-functions)
[ "${functions:-0}" -gt 10 ] || complain "only $functions functions are compiled"
[ "$(number timed-products)" -gt 3 ] || complain "only $(number timed-products) products are timed"
is cache-hits 0
settle
is compiled-functions 0
is timed-products 0
is cache-hits "$functions"
verify --set stages.backend-cuda.algorithms=first
is timed-products 0

cubins > list

# where cuBLASLt turns out to have no algorithm for a form, the graph is lowered again, without that
kernels=$(number kernels) lowerings=$(number lowerings)
find "$AOT_CACHE_DIR" -name 'cuda-*.algorithm' -exec rm {} +
for algorithms in time first; do
  AOT_CUDA_DOUBLE=no-bias=1 verify --set stages.backend-cuda.algorithms=$algorithms
  [ "$(number lowerings)" -gt "$lowerings" ] || complain "lowered $(number lowerings) times, $lowerings before"
  [ "$(number kernels)" -gt "$kernels" ] || complain "nothing adds the biases: $(number kernels) kernels, $kernels before"
done

# each file damaged in another way: a byte, the end, all of it; one has the content of another
[ "$(wc -l < list)" -gt 3 ] || complain "only $(wc -l < list) files are kept"
n=0
while read -r file; do
  case $n in
    0) cp "$file" first ;;
    1) cp first "$file" ;;
    2) : > "$file" ;;
    3) truncate -s -1 "$file" ;;
    *) printf 'X' | dd of="$file" bs=1 seek=100 conv=notrunc status=none ;;
  esac
  n=$((n + 1))
done < list
verify
[ "$(number cache-hits)" -gt 0 ] && [ "$(number compiled-functions)" -gt 0 ] || complain "not one file was whole, or all were"
verify
is compiled-functions 0

# plans of cuDNN are kept as its text, and made again where that is damaged, or another version's
cat > halves.yaml <<EOF
aot: 1
model: {path: $m/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-cuda}]
run:
  device: cuda
  train: {steps: 2, optimizer: sgd, log-every: 1, precision: bf16, loss-scale: none, data: $m/expected.safetensors}
EOF
train() { status 0 "$aothost" run halves.yaml --no-cache --json json; grep '^step' out | sed 's/  lr.*//' > "$1"; }
train made
is made-plans 2
is kept-plans 0
lowerings=$(number lowerings)
train kept
is made-plans 0
is kept-plans 2
is lowerings "$lowerings" # plans that turn out as they were taken to be cost no lowering
same made kept
find "$AOT_CACHE_DIR" -name 'cuda-*.plan' | sort > list
[ "$(wc -l < list)" = 2 ] || complain "not two plans are kept"
printf 'X' | dd of="$(head -1 list)" bs=1 seek=100 conv=notrunc status=none
train again
is made-plans 1
is kept-plans 1
same made again
export AOT_CUDA_DOUBLE="cudnn-version=91901 cudnn-extra=4096"
train newer
is made-plans 2
is kept-plans 0
is lowerings $((lowerings + 1)) # they want other workspaces than were taken
same made newer
unset AOT_CUDA_DOUBLE
for part in libraries lowering algorithms plans compile; do # what a start takes is told in parts
  awk -v ms="$(number $part-ms)" 'BEGIN { exit !(ms != "" && ms >= 0) }' || complain "$part-ms is not told"
done

# under load: told while it goes on, kept, and taken by starts that do not ask for it
m=$models/mlp
rm -rf "$AOT_CACHE_DIR"
verify -v --set stages.backend-cuda.algorithms=load
forms=$(number timed-products)
[ "${forms:-0}" -gt 0 ] || complain "no products are timed under load"
says "warning: algorithms of [0-9]+ forms of products are timed under load, for up to [0-9]+ seconds"
says "info: algorithms of [0-9]+ forms of products were timed under load in [0-9.]+ seconds"
for algorithms in load time; do
  settle --set stages.backend-cuda.algorithms=$algorithms
  is timed-products 0
done
m=$models/gpt_tiny

# two starts at the same time share the folder
rm -rf "$AOT_CACHE_DIR"
mkdir other
(cd other && verify && exit "$failed") &
verify
wait $! || complain "one of two starts fails"
verify
is compiled-functions 0
[ -z "$(find "$AOT_CACHE_DIR" -name 'work-*')" ] || complain "work is left in the cache"
finish
