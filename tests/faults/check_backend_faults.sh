#!/bin/sh
# check_backend_faults.sh AOTHOST PLUGINS: with AOT_VALIDATE=1 a backend that writes its inputs costs one clear error that names it, alone
# and as one of two; a backend that does not computes what it does otherwise.
set -u
aothost=$1; plugins=$2
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG AOT_VALIDATE
export HOME="$dir" AOT_CACHE=off
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:detect_leaks=0"
bad=0 n=0
fail() { echo "FAILED: $*"; cat err; bad=1; }
says() { grep -qE -- "$1" err || fail "$backend, $shape: does not say: $1"; }
program() { # NODES: between the parameter w, the input x and the output %o
  cat <<P
aot 1
properties imported functional
leaf 0 parameter "w" : f32[4, 3] grad
leaf 1 user_input 0 "x" : f32[4, 3]
graph @main forward {
  in %w = parameter 0 : f32[4, 3] grad
  in %x = user_input 1 : f32[4, 3]
$1
  out user_output 0 = %o
}
P
}
program '  %o = aten.mul.Tensor %x, %w' > alone.ir
# of the second backend the sine: the first one's part behind it reads what lies between parts
program '  %a = aten.mul.Tensor %x, %w
  %b = aten.sin.default %a
  %o = aten.sub.Tensor %b, %a' > between.ir
for shape in alone between; do
  rest=""; [ $shape = between ] && rest=", {use: backend-ref}"
  printf 'aot: 1\nmodel: {path: %s.ir}\nstages: [{use: "${backend}"}%s]\n' "$shape" "$rest" > $shape.yaml
done
run() { "$aothost" run $shape.yaml --plugin-dir "$plugins" --set vars.backend="$backend" --inputs random --outputs "$1" > out 2> err; }

for shape in alone between; do
  backend=writes-none
  run bare.st || fail "$shape: it does not run without guards"
  AOT_VALIDATE=1 run guarded.st || fail "$shape: a backend that is right fails"
  cmp -s bare.st guarded.st || fail "$shape: guards change what it computes"
  for backend in writes-first writes-last; do
    n=$((n + 1))
    AOT_VALIDATE=1 run faulty.st
    got=$?
    [ $got -eq 3 ] || { fail "$backend, $shape: status $got, expected 3"; continue; }
    # by its digest, or where it happens: the page is closed
    says 'wrote to its input [0-9]+ of 48 bytes, which it may only read|input [0-9]+, which is only read'
    says "stage $backend|unit $backend"
  done
done
[ $bad = 0 ] && echo "$n backends that write their inputs: found, named"
exit $bad
