#!/bin/sh
# check_museum.sh AOTHOST MUSEUM: the built plugins of the museum are those that were put there; all are listed, loaded and run, each kind
# in a pipeline of its edition, with the losses that it gave when it was built.
set -u
aothost=$1; museum=$2
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$museum" || exit 1
export HOME="$dir" AOT_CACHE_DIR="$dir/cache" AOT_PLUGIN_PATH="$museum"
bad=0
fail() { echo "FAILED: $*"; cat "$dir/out" "$dir/err" 2> /dev/null; bad=1; }
sha256sum --quiet -c SHA256SUMS || fail "a plugin is another than the one that was put here: none is ever built anew"
for so in *.so; do grep -q " $so\$" SHA256SUMS || fail "$so is not in SHA256SUMS"; done
for edition in edition_*.yaml; do
  n=${edition#edition_}; n=${n%.yaml}
  for kind in pass partition backend import opset device; do
    [ -f "museum_${kind}_$n.so" ] || fail "edition $n has no $kind"
    "$aothost" plugins "museum.$kind-$n" > "$dir/out" 2> "$dir/err" || fail "aothost plugins museum.$kind-$n"
    grep -q "museum_${kind}_$n.so" "$dir/out" || fail "aothost plugins museum.$kind-$n names another file"
  done
  "$aothost" check "$edition" > "$dir/out" 2> "$dir/err" || fail "aothost check $edition"
  for run in made cached; do # the second time the executable comes out of the cache: load gets bytes of another process
    "$aothost" run "$edition" > "$dir/out" 2> "$dir/err" || fail "aothost run $edition ($run)"
    sed -n 's/^\(step [0-9/]*  loss [0-9.]*\).*/\1/p' "$dir/out" > "$dir/losses"
    cmp -s "edition_$n.losses" "$dir/losses" || fail "$edition ($run): other losses than edition_$n.losses"
  done
  [ "$n" -lt 5 ] || "$aothost" run "$edition" --profile > "$dir/out" 2> "$dir/err" || fail "aothost run $edition --profile"
  [ "$n" -lt 5 ] || grep -q "^profile: .* mean of 3 runs after a first one" "$dir/out" || fail "$edition: no profile"
  "$aothost" run "$edition" --no-cache --time > "$dir/out" 2> "$dir/err" || fail "aothost run $edition --time"
  cat "$dir/out" "$dir/err" > "$dir/all"
  for said in "erased: 1 nodes" "decompose-rounds: 1" "device museum.device-$n"; do
    grep -qF "$said" "$dir/all" || fail "$edition: not said: $said"
  done
done

# Kernels that are done later than their nodes: as a program of additions has it; what was begun is settled when a run fails.
cat > "$dir/plain.ir" <<'END'
aot 1
properties imported functional

leaf 0 user_input 0 "x" : f32[4]

graph @main forward {
  in %x = user_input 0 : f32[4]
  %b : f32[4] = aten.add.Tensor %x, %x
  %s : f32[4] = aten.add.Tensor %b, %x
  out user_output 0 = %s
}
END
sed 's/-1e30/1e30/' kernels_6.ir > "$dir/low.ir"
for backend in backend-ref backend-cpu; do
  "$aothost" plugins "$backend" > "$dir/out" 2> "$dir/err" || continue
  kernels() { "$aothost" run kernels_6.yaml --inputs random --no-cache --set vars.backend=$backend "$@" > "$dir/out" 2> "$dir/err"; }
  kernels --outputs "$dir/kernels.st" || fail "kernels_6.yaml on $backend"
  kernels --model "$dir/plain.ir" --outputs "$dir/plain.st" || fail "a program of additions on $backend"
  cmp -s "$dir/kernels.st" "$dir/plain.st" || fail "kernels that are done later compute something else on $backend"
  kernels --model "$dir/low.ir"; [ $? -eq 2 ] || fail "a kernel that refuses what it is given on $backend: not status 2"
  grep -qF "museum: 1 settled" "$dir/err" || fail "what was begun is not settled on $backend"
  grep -qF "museum6.least.default: the first element is less than it may be" "$dir/err" || fail "not told on $backend"
done
[ $bad = 0 ] && echo "museum: $(ls ./*.so | wc -l) plugins loaded and run"
exit $bad
