#!/bin/sh
# Rows of products that are no multiple of 16 bytes, on backend-cuda's double: backend-ref's results, in memory whose rows
# begin at multiples of 128 bytes; what is a result of the program has them side by side. Large ones are multiplied in
# parts, of which the largest has 520 classes: a launch more for each of three products. A sum in two parts may be rounded
# to the next bfloat16.
. "$(dirname "$0")/lib.sh"
program() {
  { printf 'aot 1\nproperties imported\n'; leaf 0 x "[64, $2]" $((64 * $2)); leaf 1 w "[523, $2]" $((523 * $2)); leaf 2 v '[523]' 523; } > rows.ir
  awk -v dtype="$1" -v wide="$2" 'BEGIN {
  print "graph @main forward {"
  print "  in %px = parameter 0 : f32[64, " wide "]\n  in %pw = parameter 1 : f32[523, " wide "]\n  in %pv = parameter 2 : f32[523]"
  for (i = 1; i <= 3; i++) print "  %" substr("xwv", i, 1) " = aten._to_copy.default %p" substr("xwv", i, 1) ", dtype=" dtype
  print "  %own = aten.linear.default %x, %w, none"
  print "  %deep = aten.view.default %x, [8, 8, " wide "]"
  print "  %scores = aten.linear.default %deep, %w, %v"
  print "  %rows = aten.view.default %scores, [64, 523]"
  print "  %g = aten._softmax.default %rows, -1, false"
  print "  %t = aten.t.default %g"
  print "  %dw = aten.mm.default %t, %x"
  print "  %dx = aten.mm.default %g, %w"
  print "  %read = aten.mm.default %own, %w"
  print "  out user_output 0 = %dw\n  out user_output 1 = %dx\n  out user_output 2 = %own\n  out user_output 3 = %read\n}"
}' >> rows.ir
}
# DTYPE COLUMNS of x, PRODUCTS that cuBLASLt computes, TOLERANCE
check() {
  program "$1" "$2"
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model rows.ir --outputs expected.st --set vars.backend=backend-ref
  status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model rows.ir --expect expected.st --json run.json --rtol "$4" \
    --set vars.backend=backend-cuda --set run.device=cuda --set stages.backend-cuda.algorithms=first
  grep -A1 '"host-fallbacks"' run.json | grep -q '"value": 0' || { complain "products run on the host"; cat out; }
  grep -A1 '"products"' run.json | grep -q "\"value\": $3" || { complain "not $3 products in $1"; cat run.json; }
}
# DTYPE BYTES of the rows apart, and side by side, of the program that was checked last
check_memory() {
  status 0 "$aothost" inspect "$root/pipelines/inference.yaml" --model rows.ir --memory --top 40 --json plan.json \
    --set vars.backend=backend-cuda --set run.device=cuda
  grep -A2 '"%g"' plan.json | grep -q "\"bytes\": $2" || complain "rows do not lie apart in $1"
  grep -A2 '"%own"' plan.json | grep -q "\"bytes\": $3" || complain "rows of a result lie apart in $1"
}
check f32 40 5 1e-4
check_memory f32 139200 133888
check bf16 40 5 1e-4
check_memory bf16 73664 66944
check bf16 1200 8 4e-3
finish
