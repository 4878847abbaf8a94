#!/bin/sh
# check_kernel_faults.sh AOTHOST PLUGINS HERE: with AOT_VALIDATE=1 every fault of kernel_faults.def costs one clear error, with plugin,
# operator, tensor and place, under each backend that runs kernels of plugins; kernels without a fault compute what they do otherwise.
set -u
aothost=$1; plugins=$2; here=$3
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG AOT_VALIDATE
export HOME="$dir" AOT_CACHE=off
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:detect_leaks=0"
bad=0 n=0
fail() { echo "FAILED: $backend, $op, $name: $*"; cat err; bad=1; }
says() { grep -qF -- "$1" err || fail "does not say: $1"; }
cat > p.yaml <<'END'
aot: 1
model: {path: program.ir}
operators:
  - "faulty::copy(Tensor x, str fault) -> Tensor"
  - "faulty::fill(Tensor x, Tensor(a!) out, str fault) -> ()"
stages:
  - use: functionalize
  - use: ${backend}
END
program() { # NODES
  cat > program.ir <<END
aot 1
properties imported
leaf 0 user_input 0 "x" : f32[4, 3]
graph @main forward {
  in %x = user_input 0 : f32[4, 3]
  %n : f32[4, 3] = aten.neg.default %x
$1
  %o : f32[4, 3] = aten.neg.default %r
  out user_output 0 = %o
}
END
}
copy() { program "  %r : f32[4, 3] = faulty.copy.default %n, \"$1\""; }
fill() { program "  %r : f32[4, 3] = aten.zeros_like.default %n
  faulty.fill.default %n, %r, \"$1\""; }
run() { "$aothost" run p.yaml --plugin-dir "$plugins" --set vars.backend="$backend" --inputs random --outputs "$1" > out 2> err; }

sed -n 's/^KERNEL_FAULT(\([a-z]*\), "\([^"]*\)", \([0-9]\), "\(.*\)")$/\1|\2|\3|\4/p' "$here/kernel_faults.def" > faults
for backend in backend-ref backend-cpu; do
  while IFS='|' read -r op name status text; do
    "$op" "$name"
    n=$((n + 1))
    AOT_VALIDATE=1 run guarded.st
    got=$?
    [ $got -eq "$status" ] || { fail "status $got, expected $status"; continue; }
    if [ "$status" -eq 0 ]; then
      run bare.st || fail "it does not run without guards"
      cmp -s bare.st guarded.st || fail "guards change what it computes"
      continue
    fi
    says "$text"
    case $name in rounding) AOT_VALIDATE='' run bare.st && fail "it runs without guards"; says "contract violation by its plugin: ${text}"; AOT_VALIDATE=1 run guarded.st ;; esac
    says "contract violation by plugin faulty-kernels 0.2"
    case $op in fill) says "faulty.fill.default" ;; *) says "faulty.copy.default" ;; esac
    case $text in *"of its kernel of"*) ;; *) says "  node %" ;; esac # a crash has no node
    [ "$(grep -c 'error:' err)" -eq 1 ] || fail "other than one error"
  done < faults
done
op=all; name=all; [ $n -ge 24 ] || fail "$n faults only"
[ $bad = 0 ] && echo "$n faults of kernels: found, named"
exit $bad
