#!/bin/sh
# check_vendor.sh AOTHOST PLUGINS HERE: what a vendor names without the host's knowing it. Encodings: a plugin makes one, another reads
# it, backends that do not know it refuse the program where it stands, and the verifier takes types apart by it. Properties: a plugin
# gives one, another needs and drops it, in `check` as in a run.
. "$(dirname "$0")/lib.sh"
export AOT_CACHE_DIR="$dir/cache"
P="--plugin-dir $plugins/vendor"

cat > in.ir <<'END'
aot 1
properties imported functional

leaf 0 user_input 0 "x" : f32[4, 4]

graph @forward forward {
  in %x = user_input 0 : f32[4, 4]
  %a : f32[4, 4] = aten.tanh.default %x !0
  %b : f32[4, 4] = aten.relu.default %a !0
  %c : f32[4, 4] = aten.neg.default %b !0
  out user_output 0 = %c
}

origin 0 "model.py":7
END

# ---- one names it, the text carries it, another reads it and takes it away
ends 0 opt in.ir $P --use tile -o tiled.ir
cp tiled.ir out; what="tile"
out 'encoding 0 "vendor.tiled" "2x2"'
out '%2 : f32[4, 4] encoding 0 = tiles.pack %a'
out '%b : f32[4, 4] encoding 0 = aten.relu.default %2'
out '%4 : f32[4, 4] = tiles.unpack %b'
ends 0 opt tiled.ir $P; cmp -s out tiled.ir || fail "text in is not text out"
ends 0 opt tiled.ir $P --use untile -o plain.ir --time; err "vendor.tiled: 2x2"; err "tiled: 2 values"; err "knows: 1"
cmp -s plain.ir in.ir || fail "untile does not give back what tile took"

# ---- backends: one knows it, others refuse the program and say where
ends 0 opt tiled.ir $P --use tiles-backend -o low.ir
for backend in plain-backend backend-ref backend-cpu; do
  ends 2 opt tiled.ir $P --use $backend
  err "backend $backend does not know how result 0 of graph 1 has encoding vendor.tiled"; err "model.py:7"
done
sed 's/"2x2"/"4x4"/' tiled.ir > other.ir
sed '/tiles/!s/encoding 0 =/memory 3 =/; s/ encoding 0 = tiles/ = tiles/; /^encoding/d; s/tiles.pack/aten.neg.default/; s/tiles.unpack/aten.neg.default/' \
  tiled.ir > memory.ir
ends 2 opt other.ir $P --use tiles-backend; err "result 0 of graph 1 has encoding vendor.tiled"
ends 2 opt memory.ir $P --use tiles-backend; err "result 0 of graph 1 lies in memory space 3"
ends 2 opt memory.ir --use backend-ref; err "result 0 of graph 1 lies in memory space 3"
sed 's/ : f32\[4, 4\]$/ : f32[4, 4] encoding 0/; s/^leaf 0/encoding 0 "vendor.tiled" "2x2"\n\nleaf 0/' in.ir > input.ir
ends 2 opt input.ir --use backend-cpu; err "input 0 of graph 1 has encoding vendor.tiled"

# ---- a view of a tiled tensor is tiled, or it reads its operand's memory as something else
sed 's/aten.relu.default %2/aten.view.default %2, [4, 4]/; s/%b : f32\[4, 4\] encoding 0/%b : f32[4, 4]/' tiled.ir > view.ir
ends 2 opt view.ir $P; err "result 0 may share memory with operand 0, and has another encoding"

# ---- properties: simulated over the list, written with the program, shown
stages() { printf 'aot: 1\nmodel: {import: ir, path: in.ir}\nstages:\n'; for s in "$@"; do echo "  - use: $s"; done; }
grep -qx 'properties imported functional "vendor.is-tiled"' tiled.ir || fail "the text lacks the property"
stages tile untile tile > good.yaml; ends 0 check good.yaml $P
stages untile > p.yaml; ends 2 check p.yaml $P
err "p.yaml:4:10: error: stage untile requires a program that is vendor.is-tiled, and no earlier stage provides this"
err "hint: 'vendor.is-tiled' is provided by tile; add it before this stage"
stages tile tile > p.yaml; ends 2 check p.yaml $P; err "p.yaml:5:10: error: stage tile rejects the program: it is already vendor.is-tiled"
stages tile untile untile > p.yaml; ends 2 check p.yaml $P; err "p.yaml:6:10: error: stage untile requires a program that is vendor.is-tiled"
sed 's/path: in.ir/path: tiled.ir/' good.yaml > p.yaml; ends 2 check p.yaml $P; err "stage tile rejects"
stages untile | sed 's/path: in.ir/path: tiled.ir/' > p.yaml; ends 0 check p.yaml $P
ends 2 opt in.ir $P --use untile; err "stage untile requires a program that is vendor.is-tiled"
ends 2 opt in.ir $P --use tile --use untile --use untile; err "hint: 'vendor.is-tiled' is provided by tile"
ends 2 opt tiled.ir $P --use tile; err "stage tile rejects the program: it is already vendor.is-tiled"
ends 0 plugins tile $P; out "gives    vendor.is-tiled"; ends 0 plugins untile $P; out "needs    imported, vendor.is-tiled"
ends 0 plugins untile --json - $P; out '"vendor.is-tiled"'
ends 0 inspect tiled.ir $P; out "vendor.is-tiled"
[ $bad = 0 ] && echo "vendor: what it names is carried, read and refused"
exit $bad
